import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../base/backoff.ts';
import type { EngineInstrument } from '../engine/engine-setup.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { Assembler, type Answer } from './assembler.ts';
import { describeCcxtError } from './venues/ccxt-client.ts';
import { fetchHistory } from './live-history.ts';
import type { Exchange } from './venues/market-data.ts';
import { warmUpItems, type FeedItem } from './feed.ts';
import type { WarmUpRequest } from './warm-up-of-session.ts';

export interface LiveOptions {
  readonly exchange: Exchange;
  /** In the order of the universe. The exchange must have them and the timeframe. */
  readonly symbols: readonly string[];
  readonly timeframe: Timeframe;
  /** Time of the last step taken earlier, ms since epoch; the feed fetches the bars since then. */
  readonly after?: number | undefined;
  /** Bars to fetch before the first step, unless the feed continues. */
  readonly warmUp?: WarmUpRequest | undefined;
  readonly signal: AbortSignal;
  /** Time after the close of one instrument's bar before the others are fetched, ms. */
  readonly graceMs?: number;
  /** An instrument without a message for this time is fetched, ms. */
  readonly quietMs?: number;
  /** Receives problems that the feed retries. */
  readonly onTrouble?: (message: string) => void;
}

const GRACE_MS = 2000;
const QUIET_MS = 60_000;
const RECONNECT = { shortestMs: 250, longestMs: 60_000 };
/** Bars fetched per instrument; earlier ones become a gap. */
const MOST_MISSED = 5000;

/**
 * Yields bars of an exchange as they close. Starts with the first bar that closes after the start,
 * or continues after the last step taken earlier. Reconnects after a disconnect and fetches the
 * missed bars. `Assembler` decides when a bar is closed and a step complete.
 *
 * Iterating throws the reason of `signal`.
 */
export async function* liveFeed(options: LiveOptions): AsyncGenerator<FeedItem, never> {
  const { symbols } = options;
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const live = new Live(options, signal);
  try {
    for (const symbol of symbols) {
      void live.watch(symbol);
      void live.fetchWhenQuiet(symbol);
    }
    let isCold = options.after === undefined;
    for (;;) {
      for (const item of live.assembler.take()) {
        if (isCold && item.kind === 'data.bars') {
          isCold = false;
          yield* await itemsBefore(item.step.time, options);
        }
        yield item;
      }
      await live.nextChange();
      options.signal.throwIfAborted();
    }
  } finally {
    ended.abort();
  }
}

/**
 * The bars before a step. An item without bars replaces those that an earlier start recorded before it
 * was killed, because they may be too old for indicators now.
 */
async function itemsBefore(before: number, options: LiveOptions): Promise<readonly FeedItem[]> {
  const { warmUp: wanted } = options;
  if (wanted === undefined || !wantsBars(wanted)) return [];
  const items = [...warmUpItems(await historyBefore(before, wanted, options))];
  return items.length > 0 ? items : [{ kind: 'data.warm_up', bars: {} }];
}

function wantsBars({ bars, longer }: WarmUpRequest): boolean {
  return bars > 0 || Object.keys(longer).length > 0;
}

/** The bars before a step; none if they cannot be fetched, so that the session starts without them. */
async function historyBefore(
  before: number,
  wanted: WarmUpRequest,
  options: LiveOptions,
): Promise<EngineInstrument[]> {
  const { exchange, symbols, timeframe, onTrouble } = options;
  try {
    return await fetchHistory({ exchange, symbols, timeframe, wanted, before });
  } catch (error) {
    options.signal.throwIfAborted();
    onTrouble?.(`indicators start without history: ${describeCcxtError(error)}`);
    return [];
  }
}

class Live {
  readonly assembler: Assembler;
  readonly #options: LiveOptions;
  readonly #signal: AbortSignal;
  readonly #fetching = new Set<string>();
  readonly #messageAt = new Map<string, number>();
  #changed = Promise.withResolvers<void>();
  #grace: NodeJS.Timeout | undefined;

  constructor(options: LiveOptions, signal: AbortSignal) {
    const { symbols, timeframe, after } = options;
    this.#options = options;
    this.#signal = signal;
    this.assembler = new Assembler(symbols, timeframe, after);
    signal.addEventListener('abort', () => {
      clearTimeout(this.#grace);
      this.#changed.resolve();
    });
  }

  /** Resolves when something has changed since the last call. */
  async nextChange(): Promise<void> {
    await this.#changed.promise;
    this.#changed = Promise.withResolvers();
  }

  async watch(symbol: string): Promise<void> {
    const { exchange, timeframe, onTrouble } = this.#options;
    let failures = 0;
    while (!this.#signal.aborted) {
      try {
        const bars = await exchange.watch(symbol, timeframe.name);
        if (this.#signal.aborted) return;
        failures = 0;
        this.#messageAt.set(symbol, performance.now());
        this.assembler.update(symbol, bars);
        this.#notify();
        if (this.assembler.hasHole(symbol)) void this.#fetchMissing(symbol);
      } catch (error) {
        if (this.#signal.aborted) return;
        failures += 1;
        onTrouble?.(
          `${symbol}: the stream was disconnected, reconnecting: ${describeCcxtError(error)}`,
        );
        this.assembler.cutOff(symbol);
        await this.#wait(backoffMs(failures, RECONNECT, Math.random()));
      }
    }
  }

  async fetchWhenQuiet(symbol: string): Promise<void> {
    const { exchange, quietMs = QUIET_MS, onTrouble } = this.#options;
    for (;;) {
      const messageAt = this.#messageAt.get(symbol) ?? -Infinity;
      await this.#wait(quietMs);
      if (this.#signal.aborted) return;
      if ((this.#messageAt.get(symbol) ?? -Infinity) > messageAt) continue;
      const isBehind = await this.#fetchMissing(symbol);
      if (!isBehind || this.#signal.aborted) continue;
      onTrouble?.(`${symbol}: the exchange has bars that the stream did not send; reconnecting`);
      exchange.drop();
    }
  }

  #notify(): void {
    this.#changed.resolve();
    if (this.#signal.aborted || this.#grace !== undefined) return;
    if (this.assembler.symbolsToFetch().length === 0) return;
    this.#grace = setTimeout(() => {
      this.#grace = undefined;
      for (const symbol of this.assembler.symbolsToFetch()) void this.#fetchMissing(symbol);
    }, this.#options.graceMs ?? GRACE_MS);
  }

  /** @returns as `Assembler.fill`; false if the request failed. */
  async #fetchMissing(symbol: string): Promise<boolean> {
    if (this.#fetching.has(symbol) || this.#signal.aborted) return false;
    this.#fetching.add(symbol);
    try {
      const answer = await this.#query(symbol);
      return answer !== undefined && this.assembler.fill(symbol, answer);
    } catch (error) {
      if (this.#signal.aborted) return false;
      this.#options.onTrouble?.(
        `${symbol}: cannot fetch missing bars: ${describeCcxtError(error)}`,
      );
      this.assembler.giveUp(symbol);
      return false;
    } finally {
      this.#fetching.delete(symbol);
      this.#notify();
    }
  }

  async #query(symbol: string): Promise<Answer | undefined> {
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
    // Without a clock of the exchange, assume that the newest bar is still open.
    return { bars, clock: clock ?? bars.at(-1)?.time ?? missing };
  }

  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#signal }).catch(() => {});
  }
}
