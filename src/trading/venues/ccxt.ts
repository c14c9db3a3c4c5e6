/** Public market data of an exchange through ccxt, which is loaded when the first one is opened. */
import { ServiceError } from '../../base/errors.ts';
import type { Candle } from '../../market/bars.ts';
import type { TimeframeName } from '../../market/timeframe.ts';
import { openClient, whyOf, type Row } from './ccxt-client.ts';
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

/** So many bars of each symbol are kept to see what changes of them. */
const KEPT_BARS = 60;
const PAGE = 1000;
/** Of the list of symbols, for one that is not in it. */
const RELOAD_EVERY_MS = 60_000;

/** @throws ServiceError `conflict` when ccxt is not installed, or has no such exchange. */
export function openExchange(
  name: string,
  definition: ExchangeDefinition,
  signal: AbortSignal,
): Exchange {
  const connection = openClient(name, definition, signal, { options: { OHLCVLimit: KEPT_BARS } });
  const { client, called, ask, drop } = connection;

  let loadedAt = -Infinity;
  const missing = async (symbols: readonly string[]): Promise<readonly number[]> => {
    const among = (): number[] =>
      symbols.flatMap((symbol, at) =>
        Object.hasOwn(client.markets ?? {}, called(symbol)) ? [] : [at],
      );
    if (among().length > 0 && performance.now() - loadedAt > RELOAD_EVERY_MS) {
      await ask(() => client.loadMarkets(true), { attempts: 2 });
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
    drop,
    close: () => connection.close(),
  };
}

function unavailable(name: string, error: unknown): ServiceError {
  return new ServiceError('exchange_unavailable', `${name} does not answer: ${whyOf(error)}`, {
    remedy: 'Try again later, or see whether the server can reach the exchange.',
    cause: error,
  });
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
