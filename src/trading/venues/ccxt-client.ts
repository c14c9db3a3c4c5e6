import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import { msSince, thisMoment, type Moment } from '../../base/elapsed.ts';
import { ServiceError } from '../../base/errors.ts';
import { printableLine } from '../../base/printable.ts';
import type { ExchangeDefinition } from './exchanges-file.ts';

/** What is used of an exchange of ccxt. */
export interface Client {
  readonly has: Readonly<Record<string, unknown>>;
  readonly timeframes: Readonly<Record<string, unknown>>;
  readonly features: unknown;
  readonly precisionMode: number;
  readonly markets: Readonly<Record<string, Market>> | undefined;
  readonly clients: Readonly<Record<string, Stream>>;
  urls: Record<string, unknown>;
  /** An answer is waited for so long, ms. */
  timeout: number;
  handleRestResponse(response: object, ...rest: readonly unknown[]): Promise<unknown>;
  getResponseHeaders(response: object): Readonly<Record<string, string>>;
  /** What to send, by method and path; called right before that is sent. */
  sign(
    path: string,
    api: unknown,
    method: string,
    params: Readonly<Record<string, unknown>>,
    ...rest: readonly unknown[]
  ): unknown;
  parseOrders(orders: unknown, ...rest: readonly unknown[]): ClientOrder[];
  loadMarkets(reload?: boolean): Promise<unknown>;
  fetchMarkets(params: object): Promise<readonly Market[]>;
  loadTimeDifference(): Promise<unknown>;
  fetchTime(): Promise<number | undefined>;
  fetchOHLCV(symbol: string, timeframe: string, since: number, limit: number): Promise<Row[]>;
  watchOHLCV(symbol: string, timeframe: string): Promise<Row[]>;
  createOrder(
    symbol: string,
    type: 'market' | 'limit',
    side: 'buy' | 'sell',
    amount: number,
    price: number | undefined,
    params: object,
  ): Promise<ClientOrder>;
  cancelOrder(id: string, symbol: string, params: object): Promise<ClientOrder>;
  fetchOrder(id: string, symbol: string, params: object): Promise<ClientOrder>;
  fetchOpenOrders(symbol: string): Promise<ClientOrder[]>;
  fetchOrderTrades(
    id: string,
    symbol: string,
    since: undefined,
    limit: number,
    params: object,
  ): Promise<ClientTrade[]>;
  fetchBalance(params: object): Promise<{ readonly total: Readonly<Record<string, number>> }>;
  watchOrders(): Promise<ClientOrder[]>;
  close(): Promise<void>;
}

interface Stream {
  readonly connection?: { terminate?: () => void };
  readonly futures: Readonly<Record<string, Promise<unknown>>>;
}

/** See https://docs.ccxt.com/#/?id=market-structure. */
export interface Market {
  readonly id: string;
  readonly symbol: string;
  readonly base: string;
  readonly quote: string;
  readonly spot?: boolean;
  readonly active?: boolean;
  readonly precision: { readonly amount?: number; readonly price?: number };
  readonly limits: Readonly<
    Partial<Record<'amount' | 'market' | 'cost', { readonly min?: number }>>
  >;
  readonly info: { readonly orderTypes?: unknown; readonly status?: unknown };
}

/** See https://docs.ccxt.com/#/?id=order-structure. */
export interface ClientOrder {
  readonly id: string;
  readonly clientOrderId?: string;
  readonly symbol: string;
  readonly status?: string;
  readonly filled?: number;
  readonly remaining?: number;
  readonly cost?: number;
  readonly timestamp?: number;
  readonly lastTradeTimestamp?: number;
  readonly lastUpdateTimestamp?: number;
  readonly trades?: readonly ClientTrade[];
}

/** See https://docs.ccxt.com/#/?id=trade-structure. */
export interface ClientTrade {
  readonly id: string;
  readonly amount: number;
  readonly cost: number;
  readonly timestamp?: number;
  readonly fee?: { readonly cost?: number; readonly currency?: string };
}

export type Row = readonly (number | undefined)[];

type ErrorClass = new (message?: string) => Error;

/** Its errors: see https://docs.ccxt.com/#/?id=error-hierarchy. */
export interface Ccxt {
  readonly pro: Readonly<Record<string, new (config: object) => Client>>;
  readonly DECIMAL_PLACES: number;
  readonly TICK_SIZE: number;
  readonly ExchangeError: ErrorClass;
  readonly AuthenticationError: ErrorClass;
  readonly BadSymbol: ErrorClass;
  readonly InsufficientFunds: ErrorClass;
  readonly InvalidOrder: ErrorClass;
  readonly DuplicateOrderId: ErrorClass;
  readonly OrderImmediatelyFillable: ErrorClass;
  readonly OrderNotFillable: ErrorClass;
  readonly OrderNotFound: ErrorClass;
  readonly MarketClosed: ErrorClass;
  readonly OperationFailed: ErrorClass;
  readonly BadResponse: ErrorClass;
  readonly RequestTimeout: ErrorClass;
  readonly InvalidNonce: ErrorClass;
  readonly RateLimitExceeded: ErrorClass;
  readonly DDoSProtection: ErrorClass;
}

/** Which failures are tried again, and how often in all. */
export interface AskOptions {
  /**
   * It goes beside the others, not after them; where the exchange takes nothing for longer than one
   * would wait, it fails at once.
   */
  readonly isUrgent?: boolean;
  readonly attempts?: number;
  /** Ends the wait for another attempt, which there is none of then. */
  readonly quit?: AbortSignal;
  /** Others than those that the exchange or the way to it may get over. */
  readonly only?: (error: unknown) => boolean;
}

export interface ClientConnection {
  readonly ccxt: Ccxt;
  readonly client: Client;
  /** What the exchange calls a symbol of a bot. */
  readonly called: (symbol: string) => string;
  /**
   * One request after another; what fails is tried again, after as long as the exchange says, and
   * others go before it meanwhile.
   */
  readonly ask: <T>(request: () => Promise<T>, options?: AskOptions) => Promise<T>;
  /** Whether the exchange refused it for too many requests. */
  readonly isLimit: (error: unknown) => boolean;
  /** Has everyone who watches cut off, so that they connect anew. */
  readonly drop: () => void;
  readonly close: () => Promise<void>;
}

const MOST_ATTEMPTS = 6;
const REST_BACKOFF = { shortestMs: 250, longestMs: 30_000 };
/** No exchange keeps anyone out for longer, unless he goes on asking. */
const LONGEST_RETRY_AFTER_MS = 10 * 60_000;
const LONGEST_URGENT_WAIT_MS = 1000;
/** ccxt itself waits so long for the head of an answer, and for its body for ever. */
const TIMEOUTS_PER_REQUEST = 6;

/**
 * @param config of ccxt; its `options` go before those of the definition.
 * @throws ServiceError `conflict` when ccxt is not installed, or has no such exchange.
 */
export function openClient(
  name: string,
  definition: ExchangeDefinition,
  signal: AbortSignal,
  { defaults = {}, options = {}, onClosed, ...config }: ClientConfig = {},
): ClientConnection {
  const ccxt = loadCcxt();
  const Pro = Object.hasOwn(ccxt.pro, definition.ccxt) ? ccxt.pro[definition.ccxt] : undefined;
  if (Pro === undefined) {
    throw new ServiceError('conflict', `ccxt streams no data of ${definition.ccxt}`, {
      reason: 'unknown_exchange',
      remedy: `See https://docs.ccxt.com for the exchanges, and correct ${name} in exchanges_file.`,
    });
  }
  const client = new Pro({
    ...config,
    enableRateLimit: true,
    // Needed for urls of ws:// without TLS, as a gateway of one's own network has them.
    httpAgent: new Agent(),
    // It would write what it cannot read to our standard output.
    log: () => {},
    options: {
      ...defaults,
      ...definition.options,
      ...options,
      // What has been seen is compared by whoever watches, so that no change is missed.
      newUpdates: false,
      // Whoever connects again has waited before.
      ws: { backoff: { base: 0 } },
    },
  });
  if (definition.urls !== undefined) client.urls = { ...client.urls, api: definition.urls };

  const isLimit = (error: unknown): boolean =>
    error instanceof ccxt.RateLimitExceeded || error instanceof ccxt.DDoSProtection;
  /** What the answer said that an error is made of, ms. */
  const retryAfter = new WeakMap<Error, number>();
  const handleRestResponse = client.handleRestResponse.bind(client);
  client.handleRestResponse = async (response, ...rest) => {
    try {
      return await handleRestResponse(response, ...rest);
    } catch (error) {
      const headers = Object.entries(client.getResponseHeaders(response));
      const text = headers.find(([header]) => header.toLowerCase() === 'retry-after')?.[1];
      const ms = 1000 * Number(text ?? 0);
      if (isLimit(error) && ms > 0) {
        retryAfter.set(error as Error, Math.min(ms, LONGEST_RETRY_AFTER_MS));
      }
      throw error;
    }
  };

  /**
   * No requests are sent for this time after that: the exchange blocks clients longer that keep
   * sending.
   */
  let closed: { readonly since: Moment; readonly ms: number } | undefined;
  const closedForMs = (): number => (closed === undefined ? 0 : closed.ms - msSince(closed.since));
  const opened = async (): Promise<void> => {
    for (;;) {
      const left = closedForMs();
      if (left <= 0) return;
      await delay(left, undefined, { signal });
    }
  };
  const attempt = async <T>(request: () => Promise<T>, withinMs: number): Promise<T> => {
    await opened();
    const late = Promise.withResolvers<never>();
    const giveUp = (): void => late.reject(signal.reason);
    const expire = (): void =>
      late.reject(new ccxt.RequestTimeout(`no whole answer within ${withinMs} ms`));
    const timer = setTimeout(expire, withinMs);
    signal.addEventListener('abort', giveUp);
    try {
      return await Promise.race([request(), late.promise]);
    } catch (error) {
      const ms = retryAfter.get(error as Error) ?? 0;
      // Too many orders, by the code of Binance, keep nobody from asking for anything else.
      if (ms > 0 && !/-1015\b/.test(String(error))) {
        if (ms > closedForMs()) closed = { since: thisMoment(), ms };
        onClosed?.(Math.ceil(ms / 1000));
      }
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
    }
  };
  let before: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(request: () => Promise<T>): Promise<T> => {
    const answer = before.then(() => attempt(request, TIMEOUTS_PER_REQUEST * client.timeout));
    before = answer.catch(() => {});
    return answer;
  };
  const atOnce = <T>(request: () => Promise<T>): Promise<T> => {
    const left = closedForMs();
    if (left <= LONGEST_URGENT_WAIT_MS) return attempt(request, client.timeout);
    const wish = `it asks for nothing to be sent for ${Math.ceil(left / 1000)} s`;
    return Promise.reject(new ccxt.RateLimitExceeded(wish));
  };
  const ask = async <T>(
    request: () => Promise<T>,
    { isUrgent = false, attempts = MOST_ATTEMPTS, quit, only = () => true }: AskOptions = {},
  ): Promise<T> => {
    for (let count = 1; ; count += 1) {
      signal.throwIfAborted();
      try {
        return await (isUrgent ? atOnce(request) : inTurn(request));
      } catch (error) {
        signal.throwIfAborted();
        const isPassing = error instanceof ccxt.OperationFailed && only(error);
        const wish = retryAfter.get(error as Error) ?? 0;
        const isTooLong = isUrgent && closedForMs() > LONGEST_URGENT_WAIT_MS;
        if (!isPassing || count >= attempts || isTooLong) throw error;
        const wait = backoffMs(count, REST_BACKOFF, Math.random());
        const ends = quit === undefined ? signal : AbortSignal.any([signal, quit]);
        await delay(Math.max(wait, wish), undefined, { signal: ends }).catch(() => {});
        signal.throwIfAborted();
        if (quit?.aborted === true) throw error;
        // Our clock has drifted from that of the exchange; if it does not tell, the next try will.
        if (error instanceof ccxt.InvalidNonce) {
          await attempt(() => client.loadTimeDifference(), client.timeout).catch(() => {});
        }
      }
    }
  };
  const drop = (): void => {
    // A line that is dead would answer no farewell.
    for (const { connection } of Object.values(client.clients)) connection?.terminate?.();
  };
  return {
    ccxt,
    client,
    called: (symbol) => definition.symbols?.[symbol] ?? symbol,
    ask,
    isLimit,
    drop,
    async close() {
      drop();
      await client.close();
    },
  };
}

interface ClientConfig {
  /** Options of ccxt that the definition may say otherwise. */
  readonly defaults?: object;
  /** Those that it may not. */
  readonly options?: object;
  /** Told for how long the exchange takes nothing more. */
  readonly onClosed?: (seconds: number) => void;
  readonly timeout?: number;
  readonly apiKey?: string;
  readonly secret?: string;
  readonly password?: string;
  readonly uid?: string;
}

const LONGEST_REASON = 300;

/**
 * What ccxt says of an error, which may have whole pages in it, and URLs with who asks for them.
 *
 * @param hide takes secrets out of a text.
 */
export function whyOf(error: unknown, hide = (text: string): string => text): string {
  const text = printableLine(hide(String(error))).replaceAll(/(?<=\w:\/\/)[^\s/@]+@/g, '');
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
