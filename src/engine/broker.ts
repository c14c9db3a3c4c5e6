import type { Instrument } from './instrument.ts';
import type { OrderEntry } from './orders/order-entry.ts';
import { readRequest } from './orders/order-request.ts';
import { viewOf } from './orders/order-view.ts';
import type { Order, OrderRequest } from './orders/order.ts';
import type { RunState } from './run-state.ts';
import type { Broker } from './strategy.ts';

/**
 * The broker that a strategy receives. It exposes no engine state: it returns numbers, views of
 * orders and new arrays, and copies its arguments.
 */
export class StrategyBroker implements Broker {
  readonly #run: RunState;
  readonly #entry: OrderEntry;

  constructor(run: RunState, entry: OrderEntry) {
    this.#run = run;
    this.#entry = entry;
    Object.freeze(this);
  }

  get cash(): number {
    return this.#run.portfolio.cash;
  }

  get equity(): number {
    return this.#run.portfolio.equity();
  }

  position(instrument: Instrument): number {
    return this.#run.portfolio.positions[this.#indexOf(instrument)]!;
  }

  entryPrice(instrument: Instrument): number {
    return this.#run.portfolio.entryPrice(this.#indexOf(instrument));
  }

  order(request: OrderRequest): Order {
    this.#checkTurn();
    const read = readRequest(request);
    this.#indexOf(read.instrument);
    return viewOf(this.#entry.order(read));
  }

  target(instrument: Instrument, weight: number): Order {
    this.#checkTurn();
    this.#indexOf(instrument);
    if (!Number.isFinite(weight)) {
      throw new RangeError(`target: weight must be a finite number, not ${String(weight)}`);
    }
    return viewOf(this.#entry.target(instrument, weight));
  }

  cancel({ id }: Pick<Order, 'id'>): void {
    this.#checkTurn();
    if (typeof id !== 'number') throw new RangeError('cancel: needs an order');
    this.#entry.cancel(id);
  }

  working(instrument?: Instrument): Order[] {
    const { working } = this.#run;
    const wanted =
      instrument === undefined
        ? working
        : working.filter((order) => order.instrument === instrument);
    return wanted.map(viewOf);
  }

  #checkTurn(): void {
    if (this.#run.isStrategysTurn) return;
    throw new Error('orders must be placed within create, onBar or onFill, not after an await');
  }

  #indexOf(instrument: Instrument): number {
    const { index } = instrument;
    if (this.#run.instruments[index] !== instrument) {
      throw new RangeError('the instrument does not belong to this run');
    }
    return index;
  }
}

Object.freeze(StrategyBroker.prototype);
Object.freeze(StrategyBroker);
