import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../../base/backoff.ts';
import { msSince, thisMoment, type Moment } from '../../../base/elapsed.ts';
import type { Log } from '../../../base/log.ts';
import { inSpan } from '../../../base/tracing.ts';
import type { OrderSpans } from '../../order-spans.ts';
import type { VenueOrder, Venue, VenueOrderId, VenueReport } from '../../venue.ts';
import type { VenueRequest } from '../../venue-orders.ts';

export interface OrderGatewayOptions {
  readonly venue: Venue;
  /** Whether an order may be placed now. */
  readonly mayPlace: (order: VenueOrder) => boolean;
  /** An order that could not be placed within this time is canceled, ms. */
  readonly placeWithinMs: number;
  readonly onReport: (report: VenueReport) => void;
  /** Called after each request, when it may be repeated. */
  readonly onRetry: () => void;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly spans?: OrderSpans | undefined;
}

const RETRY = { shortestMs: 250, longestMs: 5000 };

/** Sends requests to a venue in the background. */
export class OrderGateway {
  readonly #options: OrderGatewayOptions;
  /** Client order ids of requests in flight; a cancel does not wait for the placement. */
  readonly #placing = new Set<string>();
  readonly #canceling = new Set<string>();
  readonly #failures = new Map<string, number>();
  /** Time at which each order that is not placed yet was first requested. */
  #unplaced = new Map<string, Moment>();
  #answeredAt: Moment | undefined;
  #isConnected = true;

  constructor(options: OrderGatewayOptions) {
    this.#options = options;
  }

  /** Sends requests that are not in flight. */
  send(requests: readonly VenueRequest[]): void {
    for (const request of requests) {
      if ('cancel' in request) this.cancel(request.cancel);
      else this.#place(request.place);
    }
    if (this.#unplaced.size > 2 * requests.length) this.#forget(requests);
  }

  cancel(order: VenueOrderId): void {
    if (this.#canceling.has(order.client_order_id)) return;
    const { venue } = this.#options;
    void this.#request(this.#canceling, order, 'cancel', () => venue.cancel(order));
  }

  /** Whether the order was first requested recently enough to be placed. */
  isTimely(client_order_id: string): boolean {
    const since = this.#unplaced.get(client_order_id);
    return since !== undefined && msSince(since) < this.#options.placeWithinMs;
  }

  /** Time of the venue's last answer; undefined before the first. */
  get answeredAt(): Moment | undefined {
    return this.#answeredAt;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  noteAnswer(): void {
    this.#answeredAt = thisMoment();
    this.#isConnected = true;
  }

  noteFailure(what: string, error: unknown): void {
    const { signal, log } = this.#options;
    if (signal.aborted) return;
    this.#isConnected = false;
    log.warn(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }

  #place(order: VenueOrder): void {
    const { client_order_id: id } = order;
    const { venue, mayPlace, log } = this.#options;
    if (!this.#unplaced.has(id)) this.#unplaced.set(id, thisMoment());
    if (this.#canceling.has(id)) return;
    if (!this.isTimely(id)) {
      log.warn(`${id} could not be placed in time and is canceled`);
      this.cancel(order);
    } else if (!this.#placing.has(id) && mayPlace(order)) {
      void this.#request(this.#placing, order, 'place', () => venue.place(order));
    }
  }

  async #request(
    inFlight: Set<string>,
    { order, client_order_id: id }: VenueOrderId,
    what: 'place' | 'cancel',
    request: () => Promise<VenueReport>,
  ): Promise<void> {
    const { onReport, onRetry, signal, spans, venue } = this.#options;
    inFlight.add(id);
    const named = `cannot ${what} ${id}`;
    const attributes = { 'venue.name': venue.name, 'order.number': order };
    const trace = {
      kind: 'client',
      parent: spans?.traceparentOf(order) ?? null,
      attributes,
    } as const;
    try {
      const report = await inSpan(`venue ${what}`, trace, request);
      this.noteAnswer();
      this.#failures.delete(named);
      onReport(report);
    } catch (error) {
      this.noteFailure(named, error);
      const count = (this.#failures.get(named) ?? 0) + 1;
      this.#failures.set(named, count);
      const wait = backoffMs(count, RETRY, Math.random());
      await delay(wait, undefined, { signal }).catch(() => {});
    } finally {
      inFlight.delete(id);
      if (!signal.aborted) onRetry();
    }
  }

  /** Drops the times of orders that are no longer to be placed. */
  #forget(requests: readonly VenueRequest[]): void {
    const before = this.#unplaced;
    this.#unplaced = new Map(
      requests.flatMap((request) => {
        if ('cancel' in request) return [];
        const { client_order_id: id } = request.place;
        return [[id, before.get(id)!]];
      }),
    );
  }
}
