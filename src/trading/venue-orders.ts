import type { Engine } from '../engine/engine.ts';
import type { Order } from '../engine/orders/order.ts';
import type { SentOrder } from '../engine/execution/sent-orders.ts';
import type { VenueOrder, VenueReport } from '../engine/execution/venue-protocol.ts';
import type { WorkingOrder } from '../events/session-state.ts';
import { clientOrderId } from './venue.ts';
import type { VenueOrderId } from './venue.ts';

/** A request to the venue. */
export type VenueRequest = { readonly place: VenueOrder } | { readonly cancel: VenueOrderId };

/** Working orders of a session at a venue, their client order ids, and the requests for them. */
export class VenueOrders {
  readonly #engine: Engine;
  readonly #deploymentId: string;
  /** Epochs of the server's database, each with its first order number. */
  readonly #epochs = [{ from: 1, epoch: 1 }];
  /** Time of the last correction of each order, ms since the epoch by the venue's clock. */
  readonly #correctedAt = new Map<number, number>();
  #entries: readonly Entry[] = [];
  #working: readonly WorkingOrder[] = [];
  #isCurrent = false;

  constructor(engine: Engine, deploymentId: string) {
    this.#engine = engine;
    this.#deploymentId = deploymentId;
  }

  /** Orders placed from now on have this epoch in their client order ids. */
  startEpoch(epoch: number): void {
    this.#epochs.push({ from: this.#engine.run.orderCount + 1, epoch });
  }

  /** To be called whenever an input has reached the engine. */
  invalidate(): void {
    this.#isCurrent = false;
  }

  /** @throws RangeError if the report has the client order id of another order. */
  checkId({ order, client_order_id }: VenueReport): void {
    if (client_order_id === this.#clientOrderId(order)) return;
    throw new RangeError(`order ${order} does not have the client order id ${client_order_id}`);
  }

  /**
   * Numbers the corrections of a venue that only marks them. A report from before the last correction
   * gets an outdated number, so that the engine ignores it.
   */
  numberCorrections(report: VenueReport): VenueReport {
    const { order, corrections, is_correction, time } = report;
    const sent = this.#engine.venue!.sent.get(order);
    if (corrections !== undefined || sent === undefined) return report;
    if (is_correction === true) {
      this.#correctedAt.set(order, time);
      return { ...report, corrections: sent.corrections + 1 };
    }
    const correctedAt = this.#correctedAt.get(order);
    if (correctedAt === undefined) return report;
    return { ...report, corrections: sent.corrections - (time < correctedAt ? 1 : 0) };
  }

  /** Whether an order must wait because its instrument is halted, closed or delisted. */
  isShut({ order }: VenueOrderId): boolean {
    const venue = this.#engine.venue!;
    const sent = venue.sent.get(order);
    return sent !== undefined && venue.isShut(sent.order.instrument);
  }

  /** Oldest first. */
  working(): readonly WorkingOrder[] {
    this.#update();
    return this.#working;
  }

  /** See `TradingSession.outbox`. */
  requests(mayPlace: boolean): readonly VenueRequest[] {
    return this.#update().flatMap((entry): VenueRequest[] => {
      const { order, sent } = entry;
      if (sent === undefined) return [];
      if (sent.order.pendingCancel !== undefined) return [{ cancel: this.#orderId(order) }];
      if (sent.isReported || !mayPlace) return [];
      return [(entry.request ??= { place: { ...this.#orderId(order), ...terms(sent) } })];
    });
  }

  /** Reuses entries of unchanged orders, because a report changes only one. */
  #update(): readonly Entry[] {
    if (this.#isCurrent) return this.#entries;
    const before = this.#entries;
    let at = 0;
    this.#entries = this.#engine.run.working.map((order) => {
      // Both lists are oldest first, so a skipped entry has ended.
      while (at < before.length && before[at]!.order !== order) at += 1;
      const known = before[at];
      at += 1;
      return known !== undefined && isUnchanged(known) ? known : this.#entryOf(order);
    });
    this.#working = this.#entries.map(({ state }) => state);
    this.#isCurrent = true;
    return this.#entries;
  }

  #entryOf(order: Readonly<Order>): Entry {
    const sent = this.#engine.venue!.sent.get(order.id);
    const state: WorkingOrder = {
      ...workingOrder(order),
      ...(sent && { client_order_id: this.#clientOrderId(order.id) }),
      ...(sent?.order.pendingCancel !== undefined && { pending_cancel: true as const }),
    };
    return { order, sent, state, request: undefined };
  }

  #orderId({ id, instrument: { symbol } }: Readonly<Order>): VenueOrderId {
    return { order: id, client_order_id: this.#clientOrderId(id), symbol };
  }

  /** Uses the epoch in which the order was placed. */
  #clientOrderId(order: number): string {
    const epoch = this.#epochs.findLast(({ from }) => from <= order)?.epoch;
    return clientOrderId(this.#deploymentId, order, epoch);
  }
}

/** A working order with its state and the request for it. */
interface Entry {
  readonly order: Readonly<Order>;
  /** Undefined until the order was sent to the venue. */
  readonly sent: Readonly<SentOrder> | undefined;
  readonly state: WorkingOrder;
  request: VenueRequest | undefined;
}

/** Compares only fields that can change after an order was sent. */
function isUnchanged({ order: { filled, triggered }, sent, state }: Entry): boolean {
  return (
    sent !== undefined &&
    state.filled === filled &&
    state.triggered === triggered &&
    (state.pending_cancel === true) === (sent.order.pendingCancel !== undefined)
  );
}

export function workingOrder(order: Readonly<Order>): WorkingOrder {
  const { id, instrument, side, type, timeInForce, filled, triggered } = order;
  const known = (name: 'quantity' | 'weight' | 'limit' | 'stop'): Partial<WorkingOrder> =>
    Number.isNaN(order[name]) ? {} : { [name]: order[name] };
  return {
    order: id,
    symbol: instrument.symbol,
    side,
    type,
    time_in_force: timeInForce,
    ...known('quantity'),
    ...known('weight'),
    ...known('limit'),
    ...known('stop'),
    // Changes −0 of the engine to 0.
    filled: filled + 0,
    triggered,
  };
}

function terms({ order, collar }: Readonly<SentOrder>): Omit<VenueOrder, keyof VenueOrderId> {
  const { side, type, timeInForce, quantity, limit, stop, postOnly, reduceOnly } = order;
  return {
    side,
    // The engine denies other types.
    type: type as VenueOrder['type'],
    time_in_force: timeInForce as VenueOrder['time_in_force'],
    quantity,
    ...(!Number.isNaN(limit) && { limit }),
    ...(!Number.isNaN(collar) && collarTerms(type, collar)),
    ...(!Number.isNaN(stop) && { stop }),
    ...(postOnly && { post_only: true as const }),
    ...(reduceOnly && { reduce_only: true as const }),
  };
}

/** Turns a market or stop order into one that fills at no worse price than `limit`. */
function collarTerms(type: Order['type'], limit: number): Partial<VenueOrder> {
  if (type === 'stop') return { type: 'stop_limit', limit };
  return { type: 'limit', time_in_force: 'ioc', limit };
}
