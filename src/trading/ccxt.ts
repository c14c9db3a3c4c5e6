/** Public market data of an exchange through ccxt, which is loaded when the first one is opened. */
import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../backoff.ts';
import { ServiceError } from '../errors.ts';
import type { Candle } from '../market/bars.ts';
import type { TimeframeName } from '../market/timeframe.ts';
import { printableLine } from '../printable.ts';
import type { ExchangeDefinition } from './exchanges-file.ts';

/** A bar as an exchange gives it; nothing about it has been checked but that it has a time. */
export interface ExchangeBar extends Candle {
  /** Opening instant, ms since the epoch. */
  readonly time: number;
}

export interface Exchange {
  /**
   * Whether the exchange has them.
   * @throws ServiceError `invalid_spec` with the problems, their pointers into the spec of a bot;
   *   `exchange_unavailable` when it does not answer.
   */
  check(symbols: readonly string[], timeframe: TimeframeName): Promise<void>;
  /** The newest bars, the open one among them, once there is news of any; rejects when cut off. */
  watch(symbol: string, timeframe: TimeframeName): Promise<readonly ExchangeBar[]>;
  /** Up to 1000 bars from `since` on, the oldest first. */
  history(symbol: string, timeframe: TimeframeName, since: number): Promise<readonly ExchangeBar[]>;
  /** Its clock, if it tells: ms since the epoch. */
  time(): Promise<number | undefined>;
  /** Has everyone who watches cut off, so that they connect anew. */
  drop(): void;
  close(): Promise<void>;
}

/** What is used of an exchange of ccxt. */
interface Client {
  readonly has: Readonly<Record<string, unknown>>;
  readonly timeframes: Readonly<Record<string, unknown>>;
  readonly markets: Readonly<Record<string, unknown>> | undefined;
  readonly clients: Readonly<Record<string, { readonly connection?: { terminate?: () => void } }>>;
  readonly last_response_headers: Readonly<Record<string, string>> | undefined;
  urls: Record<string, unknown>;
  loadMarkets(reload?: boolean): Promise<unknown>;
  fetchTime(): Promise<number | undefined>;
  fetchOHLCV(symbol: string, timeframe: string, since: number, limit: number): Promise<Row[]>;
  watchOHLCV(symbol: string, timeframe: string): Promise<Row[]>;
  close(): Promise<void>;
}

type Row = readonly (number | undefined)[];

interface Ccxt {
  readonly pro: Readonly<Record<string, new (config: object) => Client>>;
  readonly NetworkError: new () => Error;
  readonly RateLimitExceeded: new () => Error;
  readonly DDoSProtection: new () => Error;
}

/** So many bars of each symbol are kept to see what changes of them. */
const KEPT_BARS = 60;
const PAGE = 1000;
const MOST_ATTEMPTS = 6;
const REST_BACKOFF = { shortestMs: 250, longestMs: 30_000 };
/** No exchange keeps anyone out for longer, unless he goes on asking. */
const LONGEST_RETRY_AFTER_MS = 10 * 60_000;
/** Of the list of symbols, for one that is not in it. */
const RELOAD_EVERY_MS = 60_000;

/** @throws ServiceError `conflict` when ccxt is not installed, or has no such exchange. */
export function openExchange(
  name: string,
  definition: ExchangeDefinition,
  signal: AbortSignal,
): Exchange {
  const ccxt = loadCcxt();
  const Pro = Object.hasOwn(ccxt.pro, definition.ccxt) ? ccxt.pro[definition.ccxt] : undefined;
  if (Pro === undefined) {
    throw new ServiceError('conflict', `ccxt streams no data of ${definition.ccxt}`, {
      reason: 'unknown_exchange',
      remedy: `See https://docs.ccxt.com for the exchanges, and correct ${name} in exchanges_file.`,
    });
  }
  const client = new Pro({
    enableRateLimit: true,
    // Needed for urls of ws:// without TLS, as a gateway of one's own network has them.
    httpAgent: new Agent(),
    // It would write what it cannot read to our standard output.
    log: () => {},
    options: {
      ...definition.options,
      // What has been seen of each bar is compared here, so that no change is missed.
      newUpdates: false,
      OHLCVLimit: KEPT_BARS,
      // Whoever connects again has waited before.
      ws: { backoff: { base: 0 } },
    },
  });
  if (definition.urls !== undefined) client.urls = { ...client.urls, api: definition.urls };
  const called = (symbol: string): string => definition.symbols?.[symbol] ?? symbol;

  let before: Promise<unknown> = Promise.resolve();
  /** One request after another, so that what an answer says of waiting is known to be its own. */
  const ask = <T>(request: () => Promise<T>, attempts = MOST_ATTEMPTS): Promise<T> => {
    const answer = before.then(() => tryAgain(request, attempts));
    before = answer.catch(() => {});
    return answer;
  };
  const tryAgain = async <T>(request: () => Promise<T>, attempts: number): Promise<T> => {
    for (let count = 1; ; count += 1) {
      signal.throwIfAborted();
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof ccxt.NetworkError) || count >= attempts) throw error;
        const wait = backoffMs(count, REST_BACKOFF, Math.random());
        await delay(Math.max(wait, retryAfterMs(error)), undefined, { signal });
      }
    }
  };
  const retryAfterMs = (error: unknown): number => {
    const isLimit = error instanceof ccxt.RateLimitExceeded || error instanceof ccxt.DDoSProtection;
    const headers = Object.entries(client.last_response_headers ?? {});
    const text = headers.find(([header]) => header.toLowerCase() === 'retry-after')?.[1];
    const ms = 1000 * Number(text ?? 0);
    return isLimit && ms > 0 ? Math.min(ms, LONGEST_RETRY_AFTER_MS) : 0;
  };

  let loadedAt = -Infinity;
  const missing = async (symbols: readonly string[]): Promise<readonly number[]> => {
    const among = (): number[] =>
      symbols.flatMap((symbol, at) =>
        Object.hasOwn(client.markets ?? {}, called(symbol)) ? [] : [at],
      );
    if (among().length > 0 && performance.now() - loadedAt > RELOAD_EVERY_MS) {
      await ask(() => client.loadMarkets(true), 2);
      loadedAt = performance.now();
    }
    return among();
  };

  return {
    async check(symbols, timeframe) {
      const problems: { code: string; message: string; pointer: string }[] = [];
      if (client.has['watchOHLCV'] !== true || client.has['fetchOHLCV'] !== true) {
        throw new ServiceError('conflict', `${name} streams no bars`, {
          reason: 'unknown_exchange',
          remedy: 'Name another exchange.',
        });
      }
      if (!Object.hasOwn(client.timeframes, ccxtTimeframe(timeframe))) {
        problems.push({
          code: 'no_live_data',
          message: `${name} has no bars of ${timeframe}`,
          pointer: '/spec/data/timeframe',
        });
      }
      const absent = await missing(symbols).catch((error: unknown) => {
        throw unavailable(name, error);
      });
      for (const at of absent) {
        problems.push({
          code: 'no_live_data',
          message: `${name} has no symbol ${JSON.stringify(called(symbols[at]!))}`,
          pointer: `/spec/universe/symbols/${at}`,
        });
      }
      if (problems.length === 0) return;
      throw new ServiceError('invalid_spec', `${name} does not have the data of the bot`, {
        problems,
        remedy:
          'Name symbols as the exchange does, such as BTC/USDT, or map them in exchanges_file.',
      });
    },
    async watch(symbol, timeframe) {
      return barsOf(await client.watchOHLCV(called(symbol), ccxtTimeframe(timeframe)));
    },
    history: (symbol, timeframe, since) =>
      ask(async () => {
        const rows = await client.fetchOHLCV(called(symbol), ccxtTimeframe(timeframe), since, PAGE);
        return barsOf(rows).sort((a, b) => a.time - b.time);
      }),
    async time() {
      return client.has['fetchTime'] === true ? ask(() => client.fetchTime()) : undefined;
    },
    drop() {
      // A line that is dead would answer no farewell.
      for (const { connection } of Object.values(client.clients)) connection?.terminate?.();
    },
    async close() {
      this.drop();
      await client.close();
    },
  };
}

function unavailable(name: string, error: unknown): ServiceError {
  return new ServiceError('exchange_unavailable', `${name} does not answer: ${whyOf(error)}`, {
    remedy: 'Try again later, or see whether the server can reach the exchange.',
    cause: error,
  });
}

const LONGEST_REASON = 300;

/** What ccxt says of an error, which may have whole pages in it, and URLs with who asks for them. */
export function whyOf(error: unknown): string {
  const text = printableLine(String(error)).replaceAll(/(?<=\w:\/\/)[^\s/@]+@/g, '');
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text;
}

function loadCcxt(): Ccxt {
  try {
    // In one file, which loads sooner than its thousand modules.
    return createRequire(import.meta.url)('ccxt') as Ccxt;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new ServiceError('conflict', 'live market data need the package ccxt', {
      reason: 'not_installed',
      remedy: 'Install it beside service-local with `npm install ccxt`.',
    });
  }
}

function ccxtTimeframe(timeframe: TimeframeName): string {
  return timeframe === '1mo' ? '1M' : timeframe;
}

/** Copies: ccxt writes into its own. */
function barsOf(rows: readonly Row[]): ExchangeBar[] {
  return rows.flatMap(([time, open = NaN, high = NaN, low = NaN, close = NaN, volume = NaN]) =>
    time !== undefined && isInstant(time) ? [{ time, open, high, low, close, volume }] : [],
  );
}

function isInstant(time: number): boolean {
  return Number.isSafeInteger(time) && time > 0 && time <= 8.64e15;
}
