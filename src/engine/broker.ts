import type { LoneTargets } from './execution/lone-targets.ts';
import type { OrderExecution } from './execution/order-execution.ts';
import type { Instrument } from './instrument.ts';
import type { MarginCalls } from './margin.ts';
import type { OrderFields } from './orders/create-order.ts';
import type { OrderBook } from './orders/order-book.ts';
import { readRequest } from './orders/order-request.ts';
import { viewOf } from './orders/order-view.ts';
import type { Order, OrderRequest } from './orders/order.ts';
import { isTarget, type WorkingOrder } from './orders/working-order.ts';
import type { RiskGate } from './risk/risk-gate.ts';
import type { RunState } from './run-state.ts';
import type { Broker } from './strategy.ts';

/**
 * The broker that a strategy receives. It exposes no engine state: it returns numbers, views of
 * orders and new arrays, and copies its arguments.
 */
export class StrategyBroker implements Broker {
  readonly #run: RunState;
  readonly #book: OrderBook;
  readonly #gate: RiskGate;
  readonly #margin: MarginCalls | undefined;
  readonly #execution: OrderExecution;
  readonly #lone: LoneTargets | undefined;

  constructor(
    run: RunState,
    book: OrderBook,
    gate: RiskGate,
    margin: MarginCalls | undefined,
    execution: OrderExecution,
    lone: LoneTargets | undefined,
  ) {
    this.#run = run;
    this.#book = book;
    this.#gate = gate;
    this.#margin = margin;
    this.#execution = execution;
    this.#lone = lone;
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
    return viewOf(this.#enter(read));
  }

  target(instrument: Instrument, weight: number): Order {
    this.#checkTurn();
    this.#indexOf(instrument);
    if (!Number.isFinite(weight)) {
      throw new RangeError(`target: weight must be a finite number, not ${String(weight)}`);
    }
    const { index, close } = instrument;
    const estimate = this.#run.portfolio.unitsToTarget(index, weight, close);
    // There is no estimate before the first bar. The side is final when the order is sized.
    const side = (Number.isNaN(estimate) ? weight : estimate) < 0 ? 'sell' : 'buy';
    const fields = { instrument, side, quantity: Number.NaN, weight } as const;
    const lone = this.#lone?.place(fields, estimate);
    if (lone !== undefined) return viewOf(lone);
    const order = this.#enter(fields);
    if (order.status === 'working') this.#replaceTargets(order);
    return viewOf(order);
  }

  cancel({ id }: Pick<Order, 'id'>): void {
    this.#checkTurn();
    if (typeof id !== 'number') throw new RangeError('cancel: needs an order');
    const found = this.#run.working.find((order) => order.id === id);
    if (found === undefined || found.isLiquidation) return;
    this.#gate.countMessage();
    this.#execution.withdraw(found, 'canceled_by_strategy');
    this.#book.dropEnded();
  }

  working(instrument?: Instrument): Order[] {
    const { working } = this.#run;
    const wanted =
      instrument === undefined
        ? working
        : working.filter((order) => order.instrument === instrument);
    return wanted.map(viewOf);
  }

  #enter(fields: OrderFields): WorkingOrder {
    const order = this.#book.create(fields);
    this.#gate.collar.anchor(order);
    const unfit = this.#margin?.denial(order) ?? this.#execution.denial(order);
    const reason = this.#gate.denial(order, unfit) ?? this.#execution.place(order);
    if (reason === undefined) this.#book.submit(order);
    else this.#book.end(order, 'denied', reason);
    return order;
  }

  /** Cancels older targets of the same instrument. */
  #replaceTargets(newest: WorkingOrder): void {
    if (this.#run.working.length === 1) return;
    for (const order of this.#run.working) {
      if (order === newest || order.instrument !== newest.instrument || !isTarget(order)) continue;
      this.#gate.countMessage();
      this.#execution.withdraw(order, 'canceled_by_strategy');
    }
    this.#book.dropEnded();
    this.#execution.sendWaiting();
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
