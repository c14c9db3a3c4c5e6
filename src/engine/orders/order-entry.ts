import type { OrderExecution } from '../execution/order-execution.ts';
import type { Instrument } from '../instrument.ts';
import type { MarginCalls } from '../margin.ts';
import type { Thresholds } from '../risk/firm-thresholds.ts';
import type { RiskGate } from '../risk/risk-gate.ts';
import type { RunState } from '../run-state.ts';
import type { OrderBook } from './order-book.ts';
import type { RequestFields } from './order-request.ts';
import { isTarget } from './working-order.ts';
import type { WorkingOrder } from './working-order.ts';

/** Accepts or denies new orders, and cancels them for the strategy or for people. */
export class OrderEntry {
  readonly #run: RunState;
  readonly #book: OrderBook;
  readonly #gate: RiskGate;
  readonly #margin: MarginCalls | undefined;
  readonly #execution: OrderExecution;

  constructor(
    run: RunState,
    book: OrderBook,
    gate: RiskGate,
    margin: MarginCalls | undefined,
    execution: OrderExecution,
  ) {
    this.#run = run;
    this.#book = book;
    this.#gate = gate;
    this.#margin = margin;
    this.#execution = execution;
  }

  order(request: RequestFields): WorkingOrder {
    return this.#enter(this.#book.create(request));
  }

  target(instrument: Instrument, weight: number): WorkingOrder {
    const { index, close } = instrument;
    const estimate = this.#run.portfolio.unitsToTarget(index, weight, close);
    // There is no estimate before the first bar. The side is final when the order is sized.
    const side = (Number.isNaN(estimate) ? weight : estimate) < 0 ? 'sell' : 'buy';
    const order = this.#enter(
      this.#book.create({ instrument, side, quantity: Number.NaN, weight }),
    );
    if (order.status === 'working') this.#replaceTargets(order);
    return order;
  }

  /** Cancels the working order with this id; any other id changes nothing. */
  cancel(id: number): void {
    const found = this.#run.working.find((order) => order.id === id);
    if (found === undefined || found.isLiquidation) return;
    this.#gate.countMessage();
    this.#execution.withdraw(found, 'canceled_by_strategy');
    this.#book.dropEnded();
  }

  /** Cancels every working order. */
  halt(): void {
    this.#run.betweenSteps(() => {
      for (const order of this.#run.working) this.#execution.withdraw(order, 'halted');
      this.#book.dropEnded();
    });
  }

  /** Replaces all thresholds, and cancels working orders that break them, the newest first. */
  setThresholds(thresholds: Thresholds): void {
    this.#gate.setThresholds(thresholds);
    this.#run.betweenSteps(() => {
      // An order may be filled before its cancel arrives, but must not cause the cancel of others.
      let staying = this.#run.working.filter(({ pendingCancel }) => pendingCancel === undefined);
      for (const order of staying.toReversed()) {
        if (order.parent !== 0 || order.permit !== undefined || order.isLiquidation) continue;
        const reason = this.#gate.brokenThreshold(order, staying);
        if (reason === undefined) continue;
        this.#execution.withdraw(order, reason);
        staying = staying.filter((other) => other !== order);
      }
      this.#book.dropEnded();
    });
  }

  #enter(order: WorkingOrder): WorkingOrder {
    this.#gate.collar.anchor(order);
    const unfit = this.#margin?.denial(order) ?? this.#execution.denial(order);
    const reason = this.#gate.denial(order, unfit) ?? this.#execution.place(order);
    if (reason === undefined) {
      this.#book.submit(order);
      this.#gate.submitted(order);
    } else this.#book.end(order, 'denied', reason);
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
}
