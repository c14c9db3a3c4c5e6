import { setTimeout as delay } from 'node:timers/promises';
import { retry } from '../../../base/backoff.ts';
import { ServiceError } from '../../../base/errors.ts';
import {
  epochOfClientId,
  orderOfClientId,
  type Venue,
  type VenueOrderId,
  type VenueReport,
} from '../../venue.ts';
import { OrderGateway, type OrderGatewayOptions } from './order-gateway.ts';

const RETRY = { shortestMs: 250, longestMs: 15_000 };

/**
 * Repeats `work` while it fails with a retryable error, for any time.
 *
 * @param problem logged before the reason of each failure.
 * @throws any other error, or an error once `signal` is aborted.
 */
export function untilAnswered<T>(
  work: () => Promise<T>,
  problem: string,
  { log, signal }: Pick<OrderGatewayOptions, 'log' | 'signal'>,
): Promise<T> {
  return retry(work, {
    ...RETRY,
    shouldRetry(error) {
      if (!(error instanceof ServiceError && error.retryable)) return false;
      log.warn(`${problem}: ${error.message}`);
      return true;
    },
    signal,
  });
}

/** The venue of a deployment, and what its last answers said. */
export class VenueConnection {
  readonly venue: Venue;
  readonly gateway: OrderGateway;
  /** Time by `performance.now()`. */
  readonly openedAt = performance.now();
  readonly #deploymentId: string;
  readonly #options: OrderGatewayOptions;
  /** Newest report of each order. */
  readonly #reported = new Map<number, string>();
  /** Count of open orders at the last check; null before it. */
  openOrders: number | null = null;
  /** Time of the last report or check, ms since epoch. */
  checkedAt: number | null = null;

  constructor(deploymentId: string, options: OrderGatewayOptions) {
    this.venue = options.venue;
    this.gateway = new OrderGateway(options);
    this.#deploymentId = deploymentId;
    this.#options = options;
  }

  epochOf({ client_order_id }: Pick<VenueOrderId, 'client_order_id'>): number {
    return epochOfClientId(this.#deploymentId, client_order_id) ?? 0;
  }

  /** Whether the report differs from the newest one of its order, or marks its sums as a correction. */
  isNews(report: VenueReport): boolean {
    this.checkedAt = Date.now();
    // A query may have reported the same sums before, without the mark that makes them count.
    return report.is_correction === true || this.#reported.get(report.order) !== textOf(report);
  }

  /** To be called once the session has taken a report. */
  keep(report: VenueReport): void {
    if (report.status === 'open') this.#reported.set(report.order, textOf(report));
    else this.#reported.delete(report.order);
  }

  /**
   * Queries the working orders.
   *
   * @returns false, without a query, while an order is on its way to the venue: a query by its id
   *   would withdraw it.
   */
  async refresh(
    working: readonly VenueOrderId[],
    onReport: (report: VenueReport) => void,
  ): Promise<boolean> {
    if (working.some(({ order }) => !this.#reported.has(order))) return false;
    for (const order of working) {
      const find = () => this.venue.find(order);
      const report = await untilAnswered(find, 'cannot query an order', this.#options);
      if (report !== undefined) onReport(report);
    }
    return true;
  }

  async *reports(): AsyncGenerator<VenueReport> {
    for await (const report of this.venue.reports(this.#options.signal)) {
      this.gateway.noteAnswer();
      yield report;
    }
  }

  /**
   * Requests cancels, then queries the open orders once and cancels those too.
   *
   * @param working orders that work as far as the session knows.
   * @param epoch orders of a newer epoch are not counted and stay open.
   * @returns whether the venue confirmed that no order is open.
   */
  async cancelOnce(
    working: () => readonly VenueOrderId[],
    withinMs: number,
    epoch: number,
  ): Promise<boolean> {
    for (const order of working()) this.gateway.cancel(order);
    const all = await this.#openOrders(withinMs);
    if (all === undefined) return false;
    const open = all.filter((order) => this.epochOf(order) <= epoch);
    this.openOrders = open.length;
    this.checkedAt = Date.now();
    if (open.length === 0 && working().length === 0) {
      const others = all.length;
      if (others > 0) {
        this.#options.log.warn(
          `${others} open orders belong to an adopted copy of the server and stay open: halt the bot there, too`,
        );
      }
      return true;
    }
    for (const { client_order_id, symbol } of open) {
      const order = orderOfClientId(this.#deploymentId, client_order_id);
      if (order !== undefined) this.gateway.cancel({ order, client_order_id, symbol });
    }
    return false;
  }

  async #openOrders(withinMs: number) {
    const late = new AbortController();
    const answer = this.venue.openOrders().then(
      (open) => {
        this.gateway.noteAnswer();
        return open;
      },
      (error: unknown) =>
        this.gateway.noteFailure('cannot read back the open orders', error) as undefined,
    );
    const never = delay(withinMs, undefined, { signal: late.signal }).catch(() => undefined);
    const open = await Promise.race([answer, never]);
    late.abort();
    return open;
  }
}

function textOf({ status, filled, cost, fee, fee_units, corrections }: VenueReport): string {
  return JSON.stringify([status, filled, cost, fee, fee_units, corrections]);
}
