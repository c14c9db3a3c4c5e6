import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import type { VenueOrderId, VenueReport } from '../venue.ts';

/** An order of which a stream told something. */
export interface StreamedOrder extends VenueOrderId {
  /** Another one when something has changed. */
  readonly mark: string;
}

export interface ReportSource {
  /** All that the stream has told of lately, once there is news; rejects when it is cut off. */
  news(): Promise<readonly StreamedOrder[]>;
  /** Has `news` cut off. */
  drop(): void;
  /** The orders that have not ended as far as is known. */
  working(): readonly VenueOrderId[];
  /** Sees which others are open. */
  refresh(): Promise<void>;
  /** Everything about one; undefined when the venue does not know it. */
  ask(order: VenueOrderId): Promise<VenueReport | undefined>;
  /** What goes wrong and is tried again. */
  trouble(what: string, error: unknown): void;
}

/** Nobody tells when the stream is up: what happened until then is asked for once more. */
const SOON_MS = 2000;
/** The stream is given so long to tell what was found out without it. */
const GRACE_MS = 2000;
const RETRY = { shortestMs: 250, longestMs: 60_000 };
/** Of so many orders is remembered what was told last. */
const MOST_TOLD = 1000;

/**
 * What happens to orders. The stream only says of which order there is news; what it is, the venue is
 * asked, so that nothing depends on having heard every message. At intervals it is asked of all
 * orders that work; if it has news that the stream has kept to itself, the stream is dead.
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
}

class Watch {
  readonly #source: ReportSource;
  readonly #everyMs: number;
  readonly #signal: AbortSignal;
  readonly #due = new Map<string, Due>();
  readonly #told = new Map<string, string>();
  /** How often the stream told of each order since it was reported last. */
  readonly #heard = new Map<string, number>();
  #marks: ReadonlyMap<string, string> = new Map();
  #news = Promise.withResolvers<void>();

  constructor(source: ReportSource, everyMs: number, signal: AbortSignal) {
    this.#source = source;
    this.#everyMs = everyMs;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#news.resolve());
    if (signal.aborted) this.#news.resolve();
  }

  /** Resolves when an order has to be asked for. */
  async wake(): Promise<void> {
    await this.#news.promise;
    if (!this.#signal.aborted) this.#news = Promise.withResolvers();
  }

  async listen(): Promise<void> {
    for (let failures = 0; !this.#signal.aborted;) {
      try {
        let news = this.#source.news();
        // Handled below; it may be cut off while the venue is asked.
        news.catch(() => {});
        await this.#refresh();
        void this.#wait(SOON_MS).then(() => this.#refresh());
        for (;;) {
          const orders = await news;
          if (this.#signal.aborted) return;
          failures = 0;
          this.#hear(orders);
          news = this.#source.news();
        }
      } catch (error) {
        if (this.#signal.aborted) return;
        failures += 1;
        this.#source.trouble('the stream of orders was cut off', error);
        await this.#wait(backoffMs(failures, RETRY, Math.random()));
      }
    }
  }

  async askAtIntervals(): Promise<void> {
    for (;;) {
      await this.#wait(this.#everyMs);
      if (this.#signal.aborted) return;
      for (const order of this.#source.working())
        this.#owe({ order, isRoutine: true, failures: 0 });
    }
  }

  async *take(): AsyncGenerator<VenueReport> {
    for (let [next] = this.#due; next !== undefined && !this.#signal.aborted; [next] = this.#due) {
      const [id, due] = next;
      this.#due.delete(id);
      const report = await this.#ask(due);
      if (report !== undefined) yield report;
    }
  }

  #hear(orders: readonly StreamedOrder[]): void {
    for (const order of orders) {
      const { client_order_id: id, mark } = order;
      if (this.#marks.get(id) === mark) continue;
      this.#heard.set(id, (this.#heard.get(id) ?? 0) + 1);
      this.#owe({ order, isRoutine: false, failures: 0 });
    }
    this.#marks = new Map(orders.map(({ client_order_id: id, mark }) => [id, mark]));
  }

  async #refresh(): Promise<void> {
    if (this.#signal.aborted) return;
    try {
      await this.#source.refresh();
    } catch (error) {
      if (this.#signal.aborted) return;
      this.#source.trouble('the open orders are not to be had', error);
    }
    for (const order of this.#source.working()) this.#owe({ order, isRoutine: false, failures: 0 });
  }

  #owe(due: Due): void {
    const { client_order_id: id } = due.order;
    if (due.isRoutine && this.#due.has(id)) return;
    this.#due.set(id, due);
    this.#news.resolve();
  }

  /** What is new of it. */
  async #ask({ order, isRoutine, failures }: Due): Promise<VenueReport | undefined> {
    const { client_order_id: id } = order;
    let report;
    try {
      report = await this.#source.ask(order);
    } catch (error) {
      if (this.#signal.aborted) return undefined;
      this.#source.trouble(`what became of ${id} is not to be had`, error);
      const again = { order, isRoutine, failures: failures + 1 };
      const wait = backoffMs(again.failures, RETRY, Math.random());
      void this.#wait(wait).then(() => this.#owe(again));
      return undefined;
    }
    if (report === undefined) return undefined;
    const text = JSON.stringify(report);
    if (this.#told.get(id) === text) return undefined;
    const isNews = report.filled > 0 || report.status !== 'open';
    if (isRoutine && isNews && !this.#heard.has(id)) void this.#dropIfSilent(id);
    this.#heard.delete(id);
    this.#told.delete(id);
    this.#told.set(id, text);
    const [oldest] = this.#told.keys();
    if (this.#told.size > MOST_TOLD) {
      this.#told.delete(oldest!);
      this.#heard.delete(oldest!);
    }
    return report;
  }

  async #dropIfSilent(id: string): Promise<void> {
    await this.#wait(GRACE_MS);
    if (this.#signal.aborted || this.#heard.has(id)) return;
    this.#source.trouble(`the stream has not told what became of ${id}`, undefined);
    this.#source.drop();
  }

  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#signal }).catch(() => {});
  }
}
