/** Public market data of an exchange through ccxt, which is loaded when the first one is opened. */
import { closest } from '../../base/closest.ts';
import { ServiceError, type Problem } from '../../base/errors.ts';
import type { Candle } from '../../market/bars.ts';
import { TIMEFRAME_NAMES, type TimeframeName } from '../../market/timeframe.ts';
import { CcxtClient, describeCcxtError } from './ccxt-client.ts';
import type { CcxtExchange, Row } from './ccxt-types.ts';
import type { ExchangeDefinition } from './exchanges-file.ts';

/** A bar as the exchange sent it. Only its time has been checked. */
export interface ExchangeBar extends Candle {
  /** Opening time, ms since epoch. */
  readonly time: number;
}

export interface Exchange {
  /**
   * Checks that the exchange has the symbols and the timeframe.
   *
   * @throws ServiceError `invalid_spec` with pointers into the spec of a bot;
   *   `exchange_unavailable` if the exchange does not answer.
   */
  check(symbols: readonly string[], timeframe: TimeframeName): Promise<void>;
  /** Whether the exchange has bars of the timeframe. */
  offers(timeframe: TimeframeName): boolean;
  /**
   * Checks that the exchange has past bars of the symbol.
   *
   * @throws ServiceError `invalid_data` if it does not; `exchange_unavailable`.
   */
  checkHistory(symbol: string, timeframe: TimeframeName): Promise<void>;
  /**
   * Resolves with the newest bars, including the open one, once any has changed; rejects on a
   * disconnect.
   */
  watch(symbol: string, timeframe: TimeframeName): Promise<readonly ExchangeBar[]>;
  /** Maximum number of bars that `history` returns. */
  readonly pageSize: number;
  /** Bars from `since` on, oldest first. */
  history(symbol: string, timeframe: TimeframeName, since: number): Promise<readonly ExchangeBar[]>;
  /** Time of the exchange, ms since epoch; undefined if it has no such endpoint. */
  time(): Promise<number | undefined>;
  /** Disconnects all streams, so that their users reconnect. */
  drop(): void;
  close(): Promise<void>;
}

/** Bars per symbol that ccxt keeps, so that changes of earlier bars are noticed. */
const KEPT_BARS = 60;
const PAGE = 1000;
/** Shortest interval between reloads of the markets when a symbol is missing. */
const RELOAD_EVERY_MS = 60_000;

/**
 * @param connect see `ClientConfig`.
 * @throws ServiceError `conflict` if ccxt is not installed or does not have the exchange.
 */
export function openExchange(
  name: string,
  definition: ExchangeDefinition,
  signal: AbortSignal,
  connect?: (exchange: CcxtExchange) => void,
): Exchange {
  const options = { OHLCVLimit: KEPT_BARS };
  return new MarketData(name, new CcxtClient(name, definition, signal, { options, connect }));
}

class MarketData implements Exchange {
  readonly #name: string;
  readonly #client: CcxtClient;
  /** Time of the last reload of the markets, by `performance.now()`. */
  #loadedAt = -Infinity;

  constructor(name: string, client: CcxtClient) {
    this.#name = name;
    this.#client = client;
  }

  async check(symbols: readonly string[], timeframe: TimeframeName): Promise<void> {
    const name = this.#name;
    const { exchange } = this.#client;
    if (exchange.has['watchOHLCV'] !== true || exchange.has['fetchOHLCV'] !== true) {
      throw new ServiceError('conflict', `${name} does not stream bars`, {
        reason: 'unknown_exchange',
        remedy: 'Choose an exchange that ccxt can stream bars from.',
      });
    }
    const problems: Problem[] = [];
    const lacks = (what: string, pointer: string): void =>
      void problems.push({ code: 'no_live_data', message: `${name} has no ${what}`, pointer });
    if (!this.offers(timeframe)) {
      lacks(`${timeframe} bars`, '/spec/data/timeframe');
    }
    const missing = await this.#missing(symbols).catch((error: unknown) => {
      throw unavailable(name, error);
    });
    for (const at of missing) {
      const symbol = JSON.stringify(this.#client.exchangeSymbol(symbols[at]!));
      lacks(`symbol ${symbol}`, `/spec/universe/symbols/${at}`);
    }
    if (problems.length === 0) return;
    throw new ServiceError('invalid_spec', `${name} does not have the data that the bot needs`, {
      problems,
      remedy: 'Use the symbols of the exchange, such as BTC/USDT, or map them in exchanges_file.',
    });
  }

  offers(timeframe: TimeframeName): boolean {
    return Object.hasOwn(this.#client.exchange.timeframes, ccxtTimeframe(timeframe));
  }

  async checkHistory(symbol: string, timeframe: TimeframeName): Promise<void> {
    const name = this.#name;
    const { exchange } = this.#client;
    const lacks = (what: string, remedy: string): ServiceError =>
      new ServiceError('invalid_data', `${name} has no ${what}`, { remedy });
    if (exchange.has['fetchOHLCV'] !== true) {
      throw lacks('past bars', 'Choose another exchange, or import a file with `data import`.');
    }
    const names = TIMEFRAME_NAMES.filter((one) => this.offers(one));
    if (!names.includes(timeframe)) {
      throw lacks(`${timeframe} bars`, `Choose one of ${names.join(', ')}.`);
    }
    const missing = await this.#missing([symbol]).catch((error: unknown) => {
      throw unavailable(name, error);
    });
    if (missing.length === 0) return;
    const similar = closest(symbol, Object.keys(exchange.markets ?? {}));
    const remedy = similar
      ? `Did you mean ${similar}?`
      : 'Write it as BASE/QUOTE, such as BTC/USDT.';
    throw lacks(`symbol ${JSON.stringify(symbol)}`, remedy);
  }

  /** Returns the indexes of the symbols that the exchange does not have. */
  async #missing(symbols: readonly string[]): Promise<readonly number[]> {
    const { exchange } = this.#client;
    const missing = (): number[] =>
      symbols.flatMap((symbol, at) =>
        Object.hasOwn(exchange.markets ?? {}, this.#client.exchangeSymbol(symbol)) ? [] : [at],
      );
    if (missing().length > 0 && performance.now() - this.#loadedAt > RELOAD_EVERY_MS) {
      await this.#client.ask(() => exchange.loadMarkets(true), { attempts: 2 });
      this.#loadedAt = performance.now();
    }
    return missing();
  }

  get pageSize(): number {
    return Math.min(PAGE, this.#client.exchange.features?.spot?.fetchOHLCV?.limit ?? PAGE);
  }

  async watch(symbol: string, timeframe: TimeframeName): Promise<readonly ExchangeBar[]> {
    const { exchange } = this.#client;
    const rows = exchange.watchOHLCV(this.#client.exchangeSymbol(symbol), ccxtTimeframe(timeframe));
    return barsOf(await rows);
  }

  history(
    symbol: string,
    timeframe: TimeframeName,
    since: number,
  ): Promise<readonly ExchangeBar[]> {
    const { exchange } = this.#client;
    const at = this.#client.exchangeSymbol(symbol);
    return this.#client.ask(async () => {
      const rows = await exchange.fetchOHLCV(at, ccxtTimeframe(timeframe), since, this.pageSize);
      return barsOf(rows).sort((a, b) => a.time - b.time);
    });
  }

  async time(): Promise<number | undefined> {
    const { exchange } = this.#client;
    return exchange.has['fetchTime'] === true
      ? this.#client.ask(() => exchange.fetchTime())
      : undefined;
  }

  drop(): void {
    this.#client.drop();
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

/** Error for a request that an exchange did not answer. */
export function unavailable(name: string, error: unknown): ServiceError {
  return new ServiceError(
    'exchange_unavailable',
    `${name} does not answer: ${describeCcxtError(error)}`,
    {
      remedy: 'Try again later, or check that this machine can reach the exchange.',
      cause: error,
    },
  );
}

function ccxtTimeframe(timeframe: TimeframeName): string {
  return timeframe === '1mo' ? '1M' : timeframe;
}

/** Returns copies, because ccxt modifies its own rows. */
function barsOf(rows: readonly Row[]): ExchangeBar[] {
  return rows.flatMap(([time, open = NaN, high = NaN, low = NaN, close = NaN, volume = NaN]) =>
    time !== undefined && isInstant(time) ? [{ time, open, high, low, close, volume }] : [],
  );
}

function isInstant(time: number): boolean {
  return Number.isSafeInteger(time) && time > 0 && time <= 8.64e15;
}
