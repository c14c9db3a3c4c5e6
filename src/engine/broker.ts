import type { Instrument } from './instrument.ts';
import { readRequest } from './orders/order-request.ts';
import type { RequestFields } from './orders/order-request.ts';
import { OrderView } from './orders/order-view.ts';
import type { Order, OrderRequest } from './orders/order.ts';
import type { Portfolio } from './portfolio.ts';
import type { Broker } from './strategy.ts';
import type { WorkingOrder } from './orders/working-order.ts';

/** The parts of a run that its broker needs. */
export interface Trading {
  readonly portfolio: Portfolio;
  readonly instruments: readonly Instrument[];
  readonly working: readonly WorkingOrder[];
  /** Whether the strategy may place orders now, within `create`, `onBar` or `onFill`. */
  isStrategysTurn(): boolean;
  order(request: RequestFields): WorkingOrder;
  target(instrument: Instrument, weight: number): WorkingOrder;
  /** Cancels the working order of this number; any other number changes nothing. */
  cancel(id: number): void;
}

/**
 * The broker that a strategy receives. It exposes no engine state: it returns numbers, views of
 * orders and new arrays, and copies its arguments.
 */
export class StrategyBroker implements Broker {
  readonly #trading: Trading;

  constructor(trading: Trading) {
    this.#trading = trading;
    Object.freeze(this);
  }

  get cash(): number {
    return this.#trading.portfolio.cash;
  }

  get equity(): number {
    return this.#trading.portfolio.equity();
  }

  position(instrument: Instrument): number {
    return this.#trading.portfolio.positions[this.#indexOf(instrument)]!;
  }

  entryPrice(instrument: Instrument): number {
    return this.#trading.portfolio.entryPrice(this.#indexOf(instrument));
  }

  order(request: OrderRequest): Order {
    this.#checkTurn();
    const read = readRequest(request);
    this.#indexOf(read.instrument);
    return viewOf(this.#trading.order(read));
  }

  target(instrument: Instrument, weight: number): Order {
    this.#checkTurn();
    this.#indexOf(instrument);
    if (!Number.isFinite(weight)) {
      throw new RangeError(`target: weight must be a finite number, not ${String(weight)}`);
    }
    return viewOf(this.#trading.target(instrument, weight));
  }

  cancel({ id }: Pick<Order, 'id'>): void {
    this.#checkTurn();
    if (typeof id !== 'number') throw new RangeError('cancel: needs an order');
    this.#trading.cancel(id);
  }

  working(instrument?: Instrument): Order[] {
    const { working } = this.#trading;
    const wanted =
      instrument === undefined
        ? working
        : working.filter((order) => order.instrument === instrument);
    return wanted.map(viewOf);
  }

  #checkTurn(): void {
    if (this.#trading.isStrategysTurn()) return;
    throw new Error('orders must be placed within create, onBar or onFill, not after an await');
  }

  #indexOf(instrument: Instrument): number {
    const { index } = instrument;
    if (this.#trading.instruments[index] !== instrument) {
      throw new RangeError('the instrument does not belong to this run');
    }
    return index;
  }
}

Object.freeze(StrategyBroker.prototype);
Object.freeze(StrategyBroker);

/** The single view of an order, so that strategies can compare orders by identity. */
export function viewOf(order: WorkingOrder): Order {
  return (order.view ??= new OrderView(order));
}
