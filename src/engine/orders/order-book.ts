import type { Booking } from '../booking.ts';
import type { RunState } from '../run-state.ts';
import { createOrder, type Origin } from './create-order.ts';
import type { RequestFields } from './order-request.ts';
import { viewOf } from './order-view.ts';
import type { OrderReason } from './order.ts';
import { decide, evolve } from './order-lifecycle.ts';
import type { OrderChange, OrderCommand, UnfilledStatus } from './order-lifecycle.ts';
import type { WorkingOrder } from './working-order.ts';

const SUBMITTED: OrderChange = { kind: 'submitted' };
const TRIGGER: OrderCommand = { kind: 'trigger' };
const COMPLETE: OrderCommand = { kind: 'complete', isReported: false };
const COMPLETE_AS_REPORTED: OrderCommand = { kind: 'complete', isReported: true };

/** The only place where the state of an order changes. Records each change in the journal and counts it. */
export class OrderBook {
  readonly #run: RunState;
  /** Written for every fill, since a run makes too many to leave each to the garbage collector. */
  readonly #fill: { kind: 'filled'; booking: Booking; filled: number };

  constructor(run: RunState) {
    this.#run = run;
    this.#fill = { kind: 'filled', booking: run.booking, filled: -0 };
  }

  create(request: RequestFields, origin?: Origin): WorkingOrder {
    this.#run.orderCount += 1;
    return createOrder(this.#run.orderCount, this.#run.config.units, request, origin);
  }

  submit(order: WorkingOrder): void {
    this.#apply(order, SUBMITTED, this.#run.now);
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

  /**
   * Records the fill that the booking of the run describes, after the portfolio has booked it.
   *
   * @param filled units filled so far, this fill included.
   */
  fill(order: WorkingOrder, filled: number): void {
    this.#fill.filled = filled;
    this.#apply(order, this.#fill, 0);
  }

  /**
   * Records the correction that the booking of the run describes.
   *
   * @param filled units filled after the correction.
   */
  correct(order: WorkingOrder, filled: number): void {
    this.#apply(order, { kind: 'corrected', booking: this.#run.booking, filled }, 0);
  }

  /** Records the fee that the booking of the run describes. */
  charge(order: WorkingOrder): void {
    this.#apply(order, { kind: 'charged', booking: this.#run.booking }, 0);
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
    if (change !== undefined) this.#apply(order, change, time);
  }

  #apply(order: WorkingOrder, change: OrderChange, time: number): void {
    evolve(order, change);
    const { journal, portfolio } = this.#run;
    switch (change.kind) {
      case 'submitted':
        this.#run.orders.submitted += 1;
        journal.submitted(time, order);
        this.#run.working.push(order);
        break;
      case 'triggered':
        journal.triggered(time, order);
        break;
      case 'pending_cancel':
        journal.pendingCancel(time, order, change.reason);
        break;
      case 'filled':
        this.#run.orders.fills += 1;
        journal.filled(order, change.booking, portfolio);
        this.#notify(order, change.booking);
        break;
      case 'corrected':
        journal.corrected(order, change.booking, portfolio);
        break;
      case 'charged':
        journal.fee(order, change.booking, portfolio);
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

  #notify(order: WorkingOrder, { quantity, price, fee }: Booking): void {
    if (this.#run.strategy!.onFill === undefined) return;
    const { instrument } = order;
    this.#run.fills.push(Object.freeze({ order: viewOf(order), instrument, quantity, price, fee }));
  }

  #countEnd(status: UnfilledStatus, reason: OrderReason): void {
    if (status === 'canceled' || status === 'expired') this.#run.orders[status] += 1;
    else {
      const counts = this.#run.orders[status];
      counts[reason] = (counts[reason] ?? 0) + 1;
    }
  }
}
