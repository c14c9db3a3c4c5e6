import type { RiskGate } from '../risk/risk-gate.ts';
import type { RunState } from '../run-state.ts';
import { createOrder, type OrderFields } from './create-order.ts';
import { viewOf } from './order-view.ts';
import { LIMIT_REASONS, type OrderReason } from './order.ts';
import { decide, evolve, type OrderCommand, type UnfilledStatus } from './order-lifecycle.ts';
import type { WorkingOrder } from './working-order.ts';

const LIMITS: ReadonlySet<string> = new Set(LIMIT_REASONS);

const TRIGGER: OrderCommand = { kind: 'trigger' };
const COMPLETE: OrderCommand = { kind: 'complete', isReported: false };
const COMPLETE_AS_REPORTED: OrderCommand = { kind: 'complete', isReported: true };

/** Creates orders and changes their status. Records each change in the journal and counts it. */
export class OrderBook {
  readonly #run: RunState;
  readonly #gate: RiskGate;

  constructor(run: RunState, gate: RiskGate) {
    this.#run = run;
    this.#gate = gate;
  }

  create(fields: OrderFields): WorkingOrder {
    this.#run.orderCount += 1;
    return createOrder(this.#run.orderCount, this.#run.config.units, fields);
  }

  submit(order: WorkingOrder): void {
    this.#run.orders.submitted += 1;
    this.#run.journal.submitted(this.#run.now, order);
    this.#run.working.push(order);
    this.#gate.submitted(order);
  }

  trigger(order: WorkingOrder): void {
    this.#perform(order, TRIGGER, this.#run.now);
  }

  cancel(order: WorkingOrder, reason: OrderReason, isAtVenue = false): void {
    this.#perform(order, { kind: 'cancel', reason, isAtVenue }, this.#run.now);
  }

  /** Ends an order without a complete fill at `time`, ms; by default at the current step. */
  end(
    order: WorkingOrder,
    status: UnfilledStatus,
    reason: OrderReason,
    time = this.#run.now,
  ): void {
    this.#perform(order, { kind: 'end', status, reason }, time);
  }

  /** Records the fill that the booking of the run describes, after the portfolio has booked it. */
  fill(order: WorkingOrder, isFirst: boolean): void {
    const { booking, fills, journal, orders, portfolio, strategy } = this.#run;
    orders.fills += 1;
    journal.booked('order.filled', order, booking, portfolio);
    this.#gate.filled(order, booking, isFirst);
    if (strategy!.onFill === undefined) return;
    const { quantity, price, fee } = booking;
    const { instrument } = order;
    fills.push(Object.freeze({ order: viewOf(order), instrument, quantity, price, fee }));
  }

  /** Ends an order that is completely filled, or that the venue reports as such. */
  complete(order: WorkingOrder, isReported: boolean): void {
    this.#perform(order, isReported ? COMPLETE_AS_REPORTED : COMPLETE, 0);
  }

  /** Removes ended orders from the working ones. */
  dropEnded(): void {
    const { working } = this.#run;
    let kept = 0;
    for (const order of working) {
      if (order.status === 'working') working[kept++] = order;
    }
    while (working.length > kept) working.pop();
  }

  #perform(order: WorkingOrder, command: OrderCommand, time: number): void {
    const change = decide(order, command);
    if (change === undefined) return;
    evolve(order, change);
    const { journal } = this.#run;
    switch (change.kind) {
      case 'triggered':
        journal.triggered(time, order);
        break;
      case 'pending_cancel':
        journal.ended('order.pending_cancel', time, order, change.reason);
        break;
      case 'completed':
        this.#run.orders.filled += 1;
        break;
      case 'ended':
        this.#countEnd(change.status, change.reason);
        journal.ended(`order.${change.status}`, time, order, change.reason);
        break;
      default:
        change satisfies never;
    }
  }

  #countEnd(status: UnfilledStatus, reason: OrderReason): void {
    const { orders } = this.#run;
    if (status === 'rejected' || status === 'denied') return add(orders[status], reason);
    orders[status] += 1;
    if (LIMITS.has(reason)) add(orders.limited, reason);
  }
}

function add(counts: Record<string, number>, reason: OrderReason): void {
  counts[reason] = (counts[reason] ?? 0) + 1;
}
