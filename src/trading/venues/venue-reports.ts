import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import type { VenueOrderId, VenueReport } from '../venue.ts';

/** An order in a message of the stream. */
export interface StreamedOrder extends VenueOrderId {
  /** Changes whenever the order changes. */
  readonly mark: string;
}

export interface ReportSource {
  /**
   * Resolves with the recently changed orders of the stream, once there are new changes; rejects on
   * a disconnect.
   */
  nextOrders(): Promise<readonly StreamedOrder[]>;
  /** Disconnects the stream, so that `nextOrders` rejects. */
  drop(): void;
  /** Orders that have not ended, as far as is known. */
  working(): readonly VenueOrderId[];
  /** Adds open orders of the venue to the result of `working`. */
  refresh(): Promise<void>;
  /** Fetches the full report of an order; undefined if the venue does not know it. */
  fetch(order: VenueOrderId): Promise<VenueReport | undefined>;
  /** Reports a problem that will be retried. */
  trouble(what: string, error: unknown): void;
}

/** No message confirms a subscription, so working orders are queried retry after this time. */
const SOON_MS = 2000;
/** Time for the stream to send a change that a query has found. */
const GRACE_MS = 2000;
const RETRY = { shortestMs: 250, longestMs: 60_000 };
/** Time after which lower sums of an order are queried again, before they count as a correction. */
const CONFIRM_MS = 1000;
/** Sums that differ by less than this factor differ by rounding only. */
const LESS = 1 - 1e-9;
/** Count of orders whose last report is remembered. */
const MOST_REMEMBERED = 1000;

/**
 * Yields new reports of orders. A message of the stream only names an order; its report is queried
 * from the venue, so that a lost message does no harm. All working orders are also queried at
 * intervals. If a query finds a change that the stream did not send, the stream is considered dead
 * and reconnected.
 */
export async function* watchReports(
  source: ReportSource,
  everyMs: number,
  signal: AbortSignal,
): AsyncGenerator<VenueReport, void> {
  const ended = new AbortController();
  const watch = new Watch(source, everyMs, AbortSignal.any([signal, ended.signal]));
  try {
    void watch.listen();
    void watch.askAtIntervals();
    while (!signal.aborted) {
      yield* watch.take();
      await watch.wake();
    }
  } finally {
    ended.abort();
  }
}

interface Due {
  readonly order: VenueOrderId;
  readonly isRoutine: boolean;
  readonly failures: number;
  /** Report with lower sums that this query confirms as a correction. */
  readonly suspect?: string;
}

class Watch {
  readonly #source: ReportSource;
  readonly #everyMs: number;
  readonly #signal: AbortSignal;
  readonly #due = new Map<string, Due>();
  readonly #lastReports = new Map<
    string,
    { readonly report: VenueReport; readonly text: string }
  >();
  /** Orders whose failed query waits to be repeated. */
  readonly #retrying = new Set<string>();
  /** Orders of which a message has arrived since their last report. */
  readonly #announced = new Set<string>();
  #marks: ReadonlyMap<string, string> = new Map();
  #news = Promise.withResolvers<void>();

  constructor(source: ReportSource, everyMs: number, signal: AbortSignal) {
    this.#source = source;
    this.#everyMs = everyMs;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#news.resolve());
    if (signal.aborted) this.#news.resolve();
  }

  /** Resolves when an order has to be queried. */
  async wake(): Promise<void> {
    await this.#news.promise;
    if (!this.#signal.aborted) this.#news = Promise.withResolvers();
  }

  async listen(): Promise<void> {
    for (let failures = 0; !this.#signal.aborted;) {
      try {
        let news = this.#source.nextOrders();
        // Prevents an unhandled rejection if the stream disconnects during the refresh. The error
        // is handled below.
        news.catch(() => {});
        await this.#refresh();
        void this.#wait(SOON_MS).then(() => this.#refresh());
        for (;;) {
          const orders = await news;
          if (this.#signal.aborted) return;
          failures = 0;
          this.#receive(orders);
          news = this.#source.nextOrders();
        }
      } catch (error) {
        if (this.#signal.aborted) return;
        failures += 1;
        this.#source.trouble('the order stream was disconnected, reconnecting', error);
        await this.#wait(backoffMs(failures, RETRY, Math.random()));
      }
    }
  }

  async askAtIntervals(): Promise<void> {
    for (;;) {
      await this.#wait(this.#everyMs);
      if (this.#signal.aborted) return;
      for (const order of this.#source.working())
        this.#enqueue({ order, isRoutine: true, failures: 0 });
    }
  }

  async *take(): AsyncGenerator<VenueReport> {
    for (let [next] = this.#due; next !== undefined && !this.#signal.aborted; [next] = this.#due) {
      const [id, due] = next;
      this.#due.delete(id);
      const report = await this.#fetch(due);
      if (report !== undefined) yield report;
    }
  }

  #receive(orders: readonly StreamedOrder[]): void {
    for (const order of orders) {
      const { client_order_id: id, mark } = order;
      if (this.#marks.get(id) === mark) continue;
      this.#announced.add(id);
      this.#enqueue({ order, isRoutine: false, failures: 0 });
    }
    this.#marks = new Map(orders.map(({ client_order_id: id, mark }) => [id, mark]));
  }

  async #refresh(): Promise<void> {
    if (this.#signal.aborted) return;
    try {
      await this.#source.refresh();
    } catch (error) {
      if (this.#signal.aborted) return;
      this.#source.trouble('cannot fetch the open orders', error);
    }
    for (const order of this.#source.working())
      this.#enqueue({ order, isRoutine: false, failures: 0 });
  }

  #enqueue(due: Due): void {
    const { client_order_id: id } = due.order;
    if (due.isRoutine && this.#due.has(id)) return;
    this.#due.set(id, due);
    this.#news.resolve();
  }

  /** Returns the report of an order if it differs from the last one. */
  async #fetch({ order, isRoutine, failures, suspect }: Due): Promise<VenueReport | undefined> {
    const { client_order_id: id } = order;
    let report;
    try {
      report = await this.#source.fetch(order);
    } catch (error) {
      if (this.#signal.aborted) return undefined;
      this.#source.trouble(`cannot fetch the state of order ${id}, retrying`, error);
      void this.#retry({ order, isRoutine, failures: failures + 1, ...(suspect && { suspect }) });
      return undefined;
    }
    if (report === undefined) return undefined;
    const text = JSON.stringify(report);
    const last = this.#lastReports.get(id);
    if (last?.text === text) return undefined;
    const isLess = last !== undefined && isLower(report, last.report);
    if (isLess && suspect !== text) {
      const confirmation = { order, isRoutine: false, failures: 0, suspect: text };
      void this.#wait(CONFIRM_MS).then(() => this.#enqueue(confirmation));
      return undefined;
    }
    const isChange = report.filled > 0 || report.status !== 'open';
    if (isRoutine && isChange && !this.#announced.has(id)) void this.#dropIfSilent(id);
    this.#announced.delete(id);
    this.#lastReports.delete(id);
    this.#lastReports.set(id, { report, text });
    const [oldest] = this.#lastReports.keys();
    if (this.#lastReports.size > MOST_REMEMBERED) {
      this.#lastReports.delete(oldest!);
      this.#announced.delete(oldest!);
    }
    return isLess ? { ...report, is_correction: true } : report;
  }

  async #retry(due: Due): Promise<void> {
    const { client_order_id: id } = due.order;
    if (this.#retrying.has(id)) return;
    this.#retrying.add(id);
    await this.#wait(backoffMs(due.failures, RETRY, Math.random()));
    this.#retrying.delete(id);
    this.#enqueue(due);
  }

  async #dropIfSilent(id: string): Promise<void> {
    await this.#wait(GRACE_MS);
    if (this.#signal.aborted || this.#announced.has(id)) return;
    this.#source.trouble(`the order stream sent no change of order ${id}, reconnecting`, undefined);
    this.#source.drop();
  }

  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#signal }).catch(() => {});
  }
}

/**
 * Whether a report that is newer by the venue's clock has lower sums. Trades have then been undone or
 * corrected, unless the venue answered from an outdated copy.
 */
function isLower(report: VenueReport, last: VenueReport): boolean {
  if (report.time <= last.time) return false;
  return report.filled < LESS * last.filled || report.cost < LESS * last.cost;
}
