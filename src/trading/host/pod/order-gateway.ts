import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../../base/backoff.ts';
import { msSince, thisMoment, type Moment } from '../../../base/elapsed.ts';
import type { Log } from '../../../base/log.ts';
import type { VenueOrder, Venue, VenueOrderId, VenueReport } from '../../venue.ts';
import type { VenueRequest } from '../../venue-orders.ts';

/** Asks a venue, without anybody having to wait for it. */
export interface OrderGateway {
  /** Has these asked for, but those that are being asked for already. */
  send(requests: readonly VenueRequest[]): void;
  cancel(order: VenueOrderId): void;
  /** Time of the venue's last answer; undefined before the first. */
  readonly answeredAt: Moment | undefined;
  readonly isConnected: boolean;
  /** Whether the order with this client order id was requested recently enough to be placed. */
  isTimely(client_order_id: string): boolean;
  /** Told by whoever asks the venue himself. */
  noteAnswer(): void;
  failed(what: string, error: unknown): void;
}

export interface OrderGatewayOptions {
  readonly venue: Venue;
  /** Whether an order may be placed at this very moment. */
  readonly mayPlace: (order: VenueOrder) => boolean;
  /** An order that could not be placed within this time is canceled, ms. */
  readonly placeWithinMs: number;
  readonly onReport: (report: VenueReport) => void;
  /** Told when something that failed may be asked for again. */
  readonly onRetry: () => void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const RETRY = { shortestMs: 250, longestMs: 5000 };

export function openOrderGateway(options: OrderGatewayOptions): OrderGateway {
  const { venue, mayPlace, placeWithinMs, onReport, onRetry, log, signal } = options;
  /** Apart, as a cancel waits for nothing. */
  const placing = new Set<string>();
  const canceling = new Set<string>();
  const failures = new Map<string, number>();
  /** Time at which each order that is not placed yet was first requested. */
  let unplaced = new Map<string, Moment>();
  const isTimely = (id: string): boolean => {
    const since = unplaced.get(id);
    return since !== undefined && msSince(since) < placeWithinMs;
  };
  let answeredAt: Moment | undefined;
  let isConnected = true;

  const noteAnswer = (): void => {
    answeredAt = thisMoment();
    isConnected = true;
  };
  const failed = (what: string, error: unknown): void => {
    if (signal.aborted) return;
    isConnected = false;
    log.warn(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  };
  const ask = async (
    asking: Set<string>,
    { client_order_id: id }: VenueOrderId,
    what: string,
    request: () => Promise<VenueReport>,
  ): Promise<void> => {
    asking.add(id);
    const named = `${what} ${id}`;
    try {
      const report = await request();
      noteAnswer();
      failures.delete(named);
      onReport(report);
    } catch (error) {
      failed(named, error);
      const count = (failures.get(named) ?? 0) + 1;
      failures.set(named, count);
      const wait = backoffMs(count, RETRY, Math.random());
      await delay(wait, undefined, { signal }).catch(() => {});
    } finally {
      asking.delete(id);
      if (!signal.aborted) onRetry();
    }
  };
  const cancel = (order: VenueOrderId): void => {
    // At each turn it is wanted again, until the venue has said that it is done.
    if (canceling.has(order.client_order_id)) return;
    void ask(canceling, order, 'to cancel', () => venue.cancel(order));
  };
  const place = (order: VenueOrder): void => {
    const { client_order_id: id } = order;
    if (canceling.has(id)) return;
    if (!isTimely(id)) {
      log.warn(`${id} could not be placed in time: it is canceled`);
      cancel(order);
    } else if (!placing.has(id) && mayPlace(order)) {
      void ask(placing, order, 'to place', () => venue.place(order));
    }
  };
  /** Those that nobody wants placed any more, once they are the most of them. */
  const forget = (requests: readonly VenueRequest[]): void => {
    if (unplaced.size <= 2 * requests.length) return;
    const before = unplaced;
    unplaced = new Map(
      requests.flatMap((request) => {
        if ('cancel' in request) return [];
        const { client_order_id: id } = request.place;
        return [[id, before.get(id)!]];
      }),
    );
  };
  return {
    send(requests) {
      for (const request of requests) {
        if ('cancel' in request) cancel(request.cancel);
        else {
          const { place: order } = request;
          const { client_order_id: id } = order;
          if (!unplaced.has(id)) unplaced.set(id, thisMoment());
          place(order);
        }
      }
      forget(requests);
    },
    cancel,
    get answeredAt() {
      return answeredAt;
    },
    get isConnected() {
      return isConnected;
    },
    isTimely,
    noteAnswer,
    failed,
  };
}
