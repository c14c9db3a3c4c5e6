import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import { msSince, thisMoment, type Moment } from '../../base/elapsed.ts';
import { ServiceError } from '../../base/errors.ts';
import { printableLine } from '../../base/printable.ts';
import type { ExchangeDefinition } from './exchanges-file.ts';

/** Members of a ccxt exchange in use. */
export interface Client {
  readonly has: Readonly<Record<string, unknown>>;
  readonly timeframes: Readonly<Record<string, unknown>>;
  readonly features: unknown;
  readonly precisionMode: number;
  readonly markets: Readonly<Record<string, Market>> | undefined;
  readonly clients: Readonly<Record<string, Stream>>;
  urls: Record<string, unknown>;
  /** Timeout of a request, ms. */
  timeout: number;
  handleRestResponse(response: object, ...rest: readonly unknown[]): Promise<unknown>;
  getResponseHeaders(response: object): Readonly<Record<string, string>>;
  /** Builds the signed request; called right before it is sent. */
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

/** Errors: see https://docs.ccxt.com/#/?id=error-hierarchy. */
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

/** Which failures are retried, and how often. */
export interface AskOptions {
  /**
   * Sends the request at once, in parallel with queued ones. Fails at once if the exchange has
   * blocked requests for longer than an urgent one may wait.
   */
  readonly isUrgent?: boolean;
  readonly attempts?: number;
  /** Stops retrying when aborted. */
  readonly quit?: AbortSignal;
  /** Restricts retries to these temporary errors. */
  readonly only?: (error: unknown) => boolean;
}

export interface ClientConnection {
  readonly ccxt: Ccxt;
  readonly client: Client;
  /** Returns the symbol of the exchange for a symbol of a bot. */
  readonly exchangeSymbol: (symbol: string) => string;
  /**
   * Runs requests one at a time. Retries temporary failures, after the time that the exchange asks
   * for; other requests may run in between.
   */
  readonly ask: <T>(request: () => Promise<T>, options?: AskOptions) => Promise<T>;
  /** Whether the exchange rejected the request because of a rate limit. */
  readonly isRateLimit: (error: unknown) => boolean;
  /** Disconnects all streams, so that their users reconnect. */
  readonly drop: () => void;
  readonly close: () => Promise<void>;
}

const MOST_ATTEMPTS = 6;
const REST_BACKOFF = { shortestMs: 250, longestMs: 30_000 };
/** No exchange blocks clients for longer unless they keep sending. */
const LONGEST_RETRY_AFTER_MS = 10 * 60_000;
const LONGEST_URGENT_WAIT_MS = 1000;
/**
 * Limit on a whole request, as a multiple of the timeout. ccxt applies its timeout to the head of a
 * response only.
 */
const TIMEOUTS_PER_REQUEST = 6;

/**
 * @param config of ccxt; its `options` override the options of the definition.
 * @throws ServiceError `conflict` if ccxt is not installed or does not have the exchange.
 */
export function openClient(
  name: string,
  definition: ExchangeDefinition,
  signal: AbortSignal,
  { defaults = {}, options = {}, onBlocked, connect, ...config }: ClientConfig = {},
): ClientConnection {
  const ccxt = loadCcxt();
  const Pro = Object.hasOwn(ccxt.pro, definition.ccxt) ? ccxt.pro[definition.ccxt] : undefined;
  if (Pro === undefined) {
    throw new ServiceError('conflict', `ccxt cannot stream data of ${definition.ccxt}`, {
      reason: 'unknown_exchange',
      remedy: `Correct ${name} in exchanges_file; https://docs.ccxt.com lists the exchanges.`,
    });
  }
  const client = new Pro({
    ...config,
    enableRateLimit: true,
    // Needed for ws:// URLs without TLS, for example of a gateway in a private network.
    httpAgent: new Agent(),
    // ccxt otherwise logs unreadable messages to standard output.
    log: () => {},
    options: {
      ...defaults,
      ...definition.options,
      ...options,
      // Callers compare messages themselves, so that they miss no change.
      newUpdates: false,
      // Callers wait before they reconnect.
      ws: { backoff: { base: 0 } },
    },
  });
  if (definition.urls !== undefined) client.urls = { ...client.urls, api: definition.urls };
  connect?.(client);

  const isRateLimit = (error: unknown): boolean =>
    error instanceof ccxt.RateLimitExceeded || error instanceof ccxt.DDoSProtection;
  /** Value of the Retry-After header by error, ms. */
  const retryAfter = new WeakMap<Error, number>();
  const handleRestResponse = client.handleRestResponse.bind(client);
  client.handleRestResponse = async (response, ...rest) => {
    try {
      return await handleRestResponse(response, ...rest);
    } catch (error) {
      const headers = Object.entries(client.getResponseHeaders(response));
      const text = headers.find(([header]) => header.toLowerCase() === 'retry-after')?.[1];
      const ms = 1000 * Number(text ?? 0);
      if (isRateLimit(error) && ms > 0) {
        retryAfter.set(error as Error, Math.min(ms, LONGEST_RETRY_AFTER_MS));
      }
      throw error;
    }
  };

  /**
   * Block on all requests, as a duration since a moment: the exchange blocks clients longer that
   * keep sending.
   */
  let block: { readonly since: Moment; readonly ms: number } | undefined;
  const blockedForMs = (): number => (block === undefined ? 0 : block.ms - msSince(block.since));
  const waitUntilUnblocked = async (): Promise<void> => {
    for (;;) {
      const left = blockedForMs();
      if (left <= 0) return;
      await delay(left, undefined, { signal });
    }
  };
  const attempt = async <T>(request: () => Promise<T>, withinMs: number): Promise<T> => {
    await waitUntilUnblocked();
    const late = Promise.withResolvers<never>();
    const giveUp = (): void => late.reject(signal.reason);
    const expire = (): void =>
      late.reject(new ccxt.RequestTimeout(`no complete response within ${withinMs} ms`));
    const timer = setTimeout(expire, withinMs);
    signal.addEventListener('abort', giveUp);
    try {
      return await Promise.race([request(), late.promise]);
    } catch (error) {
      const ms = retryAfter.get(error as Error) ?? 0;
      // Code -1015 of Binance limits orders only, so other requests continue.
      if (ms > 0 && !/-1015\b/.test(String(error))) {
        if (ms > blockedForMs()) block = { since: thisMoment(), ms };
        onBlocked?.(Math.ceil(ms / 1000));
      }
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
    }
  };
  let before: Promise<unknown> = Promise.resolve();
  const enqueue = <T>(request: () => Promise<T>): Promise<T> => {
    const answer = before.then(() => attempt(request, TIMEOUTS_PER_REQUEST * client.timeout));
    before = answer.catch(() => {});
    return answer;
  };
  const runNow = <T>(request: () => Promise<T>): Promise<T> => {
    const left = blockedForMs();
    if (left <= LONGEST_URGENT_WAIT_MS) return attempt(request, client.timeout);
    const message = `the exchange accepts no requests for ${Math.ceil(left / 1000)} s`;
    return Promise.reject(new ccxt.RateLimitExceeded(message));
  };
  const ask = async <T>(
    request: () => Promise<T>,
    { isUrgent = false, attempts = MOST_ATTEMPTS, quit, only = () => true }: AskOptions = {},
  ): Promise<T> => {
    for (let count = 1; ; count += 1) {
      signal.throwIfAborted();
      try {
        return await (isUrgent ? runNow(request) : enqueue(request));
      } catch (error) {
        signal.throwIfAborted();
        const isPassing = error instanceof ccxt.OperationFailed && only(error);
        const retryAfterMs = retryAfter.get(error as Error) ?? 0;
        const isTooLong = isUrgent && blockedForMs() > LONGEST_URGENT_WAIT_MS;
        if (!isPassing || count >= attempts || isTooLong) throw error;
        const wait = backoffMs(count, REST_BACKOFF, Math.random());
        const ends = quit === undefined ? signal : AbortSignal.any([signal, quit]);
        await delay(Math.max(wait, retryAfterMs), undefined, { signal: ends }).catch(() => {});
        signal.throwIfAborted();
        if (quit?.aborted === true) throw error;
        // The local clock has drifted. If the exchange does not report its time now, the next
        // attempt asks again.
        if (error instanceof ccxt.InvalidNonce) {
          await attempt(() => client.loadTimeDifference(), client.timeout).catch(() => {});
        }
      }
    }
  };
  const drop = (): void => {
    // Terminates, because a dead connection would not answer a close frame.
    for (const { connection } of Object.values(client.clients)) connection?.terminate?.();
  };
  return {
    ccxt,
    client,
    exchangeSymbol: (symbol) => definition.symbols?.[symbol] ?? symbol,
    ask,
    isRateLimit,
    drop,
    async close() {
      drop();
      await client.close();
    },
  };
}

interface ClientConfig {
  /** Options of ccxt that the definition may override. */
  readonly defaults?: object;
  /** Options of ccxt that override the definition. */
  readonly options?: object;
  /** Called with the duration for which the exchange accepts no requests. */
  readonly onBlocked?: (seconds: number) => void;
  /** Replaces the network of the client, for example by an exchange in this process. */
  readonly connect?: ((client: Client) => void) | undefined;
  readonly timeout?: number;
  readonly apiKey?: string;
  readonly secret?: string;
  readonly password?: string;
  readonly uid?: string;
}

const LONGEST_REASON = 300;

/**
 * Describes an error of ccxt in one line, without credentials in URLs. Errors may contain whole
 * pages.
 *
 * @param redact removes secrets from a text.
 */
export function describeCcxtError(error: unknown, redact = (text: string): string => text): string {
  const text = printableLine(redact(String(error))).replaceAll(/(?<=\w:\/\/)[^\s/@]+@/g, '');
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text;
}

function loadCcxt(): Ccxt {
  try {
    // The CommonJS build is one file, which loads faster than its thousand modules.
    return createRequire(import.meta.url)('ccxt') as Ccxt;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new ServiceError('conflict', 'live market data requires the package ccxt', {
      reason: 'not_installed',
      remedy: 'Install it beside service-local with `npm install ccxt`.',
    });
  }
}
