import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../base/backoff.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { Assembler, type Answer } from './assembler.ts';
import { whyOf } from './venues/ccxt-client.ts';
import type { Exchange } from './venues/ccxt.ts';
import type { FeedItem } from './feed.ts';

export interface LiveOptions {
  readonly exchange: Exchange;
  /** In the order of the universe; the exchange has them and the timeframe. */
  readonly symbols: readonly string[];
  readonly timeframe: Timeframe;
  /** Time of the newest step that was taken before, ms: the bars since then are asked for. */
  readonly after?: number | undefined;
  readonly signal: AbortSignal;
  /**
   * Once one instrument's bar is closed, the others' are waited for so long before the exchange is
   * asked for them, ms.
   */
  readonly graceMs?: number;
  /** An instrument that nothing is told of for so long is asked for, ms. */
  readonly quietMs?: number;
  /** Told what goes wrong and is tried again. */
  readonly onTrouble?: (message: string) => void;
}

const GRACE_MS = 2000;
const QUIET_MS = 60_000;
const RECONNECT = { shortestMs: 250, longestMs: 60_000 };
/** Of each instrument, so many bars are asked for at most; earlier ones are a gap. */
const MOST_MISSED = 5000;

/**
 * Closed bars of an exchange as they come. It begins with the first bar that closes after its start,
 * or goes on after those that were taken before. When the exchange cuts it off it connects again, and asks for
 * what it missed. See `Assembler` for when a bar is closed, and a step is made.
 *
 * Iterating throws what `signal` was aborted with.
 */
export async function* liveFeed(options: LiveOptions): AsyncGenerator<FeedItem, never> {
  const { symbols } = options;
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const live = new Live(options, signal);
  try {
    for (const symbol of symbols) {
      void live.watch(symbol);
      void live.askWhenQuiet(symbol);
    }
    for (;;) {
      yield* live.assembler.take();
      await live.news();
      options.signal.throwIfAborted();
    }
  } finally {
    ended.abort();
  }
}

class Live {
  readonly assembler: Assembler;
  readonly #options: LiveOptions;
  readonly #signal: AbortSignal;
  readonly #asking = new Set<string>();
  readonly #heardAt = new Map<string, number>();
  #news = Promise.withResolvers<void>();
  #grace: NodeJS.Timeout | undefined;

  constructor(options: LiveOptions, signal: AbortSignal) {
    const { symbols, timeframe, after } = options;
    this.#options = options;
    this.#signal = signal;
    this.assembler = new Assembler(symbols, timeframe, after);
    signal.addEventListener('abort', () => {
      clearTimeout(this.#grace);
      this.#news.resolve();
    });
  }

  /** Resolves when something has changed since it was called last. */
  async news(): Promise<void> {
    await this.#news.promise;
    this.#news = Promise.withResolvers();
  }

  async watch(symbol: string): Promise<void> {
    const { exchange, timeframe, onTrouble } = this.#options;
    let failures = 0;
    while (!this.#signal.aborted) {
      try {
        const bars = await exchange.watch(symbol, timeframe.name);
        if (this.#signal.aborted) return;
        failures = 0;
        this.#heardAt.set(symbol, performance.now());
        this.assembler.show(symbol, bars);
        this.#changed();
        if (this.assembler.hasHole(symbol)) void this.#ask(symbol);
      } catch (error) {
        if (this.#signal.aborted) return;
        failures += 1;
        onTrouble?.(`${symbol} was cut off: ${whyOf(error)}`);
        this.assembler.cutOff(symbol);
        await this.#wait(backoffMs(failures, RECONNECT, Math.random()));
      }
    }
  }

  async askWhenQuiet(symbol: string): Promise<void> {
    const { exchange, quietMs = QUIET_MS, onTrouble } = this.#options;
    for (;;) {
      const heardAt = this.#heardAt.get(symbol) ?? -Infinity;
      await this.#wait(quietMs);
      if (this.#signal.aborted) return;
      if ((this.#heardAt.get(symbol) ?? -Infinity) > heardAt) continue;
      const isBehind = await this.#ask(symbol);
      if (!isBehind || this.#signal.aborted) continue;
      onTrouble?.(`${symbol}: the stream is silent and the exchange is not`);
      exchange.drop();
    }
  }

  #changed(): void {
    this.#news.resolve();
    if (this.#signal.aborted || this.#grace !== undefined) return;
    if (this.assembler.awaited().length === 0) return;
    this.#grace = setTimeout(() => {
      this.#grace = undefined;
      for (const symbol of this.assembler.awaited()) void this.#ask(symbol);
    }, this.#options.graceMs ?? GRACE_MS);
  }

  /** @returns see `Assembler.fill`. */
  async #ask(symbol: string): Promise<boolean> {
    if (this.#asking.has(symbol) || this.#signal.aborted) return false;
    this.#asking.add(symbol);
    try {
      const answer = await this.#askExchange(symbol);
      return answer !== undefined && this.assembler.fill(symbol, answer);
    } catch (error) {
      if (this.#signal.aborted) return false;
      this.#options.onTrouble?.(`${symbol}: what is missing is not to be had: ${whyOf(error)}`);
      this.assembler.giveUp(symbol);
      return false;
    } finally {
      this.#asking.delete(symbol);
      this.#changed();
    }
  }

  async #askExchange(symbol: string): Promise<Answer | undefined> {
    const { exchange, timeframe } = this.#options;
    const missing = this.assembler.missingSince(symbol);
    if (missing === undefined) return undefined;
    const clock = await exchange.time();
    let since =
      clock === undefined ? missing : Math.max(missing, clock - MOST_MISSED * timeframe.ms);
    const bars = [];
    while (bars.length < MOST_MISSED) {
      const page = await exchange.history(symbol, timeframe.name, since);
      bars.push(...page);
      const last = page.at(-1)?.time;
      if (last === undefined || last + timeframe.ms >= (clock ?? Infinity)) break;
      since = last + 1;
    }
    // Where nobody tells the time, the newest bar is taken for open.
    return { bars, clock: clock ?? bars.at(-1)?.time ?? missing };
  }

  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#signal }).catch(() => {});
  }
}
