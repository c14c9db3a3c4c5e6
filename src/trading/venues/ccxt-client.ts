import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { retry } from '../../base/backoff.ts';
import { msSince, thisMoment, type Moment } from '../../base/elapsed.ts';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { printableLine } from '../../base/printable.ts';
import type { Ccxt, CcxtExchange } from './ccxt-types.ts';
import type { ExchangeDefinition } from './exchanges-file.ts';

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

export interface ClientConfig {
  /** Options of ccxt that the definition may override. */
  readonly defaults?: object;
  /** Options of ccxt that override the definition. */
  readonly options?: object;
  /** Called with the duration for which the exchange accepts no requests. */
  readonly onBlocked?: (seconds: number) => void;
  /** Called when a message of a stream is not valid JSON. ccxt ignores the message. */
  readonly onUnreadable?: () => void;
  /** Timeout of a request, ms. */
  readonly timeout?: number;
  /** Replaces the network of the exchange, for example by one in this process. */
  readonly connect?: ((exchange: CcxtExchange) => void) | undefined;
  readonly apiKey?: string;
  readonly secret?: string;
  readonly password?: string;
  readonly uid?: string;
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

/** Connection to an exchange through ccxt, which is loaded when the first one is opened. */
export class CcxtClient {
  readonly ccxt = requireCcxt();
  readonly exchange: CcxtExchange;
  readonly #definition: ExchangeDefinition;
  readonly #signal: AbortSignal;
  readonly #onBlocked: ClientConfig['onBlocked'];
  /** Value of the Retry-After header by error, ms. */
  readonly #retryAfter = new WeakMap<Error, number>();
  /**
   * Block on all requests, as a duration since a moment: the exchange blocks clients longer that
   * keep sending.
   */
  #block: { readonly since: Moment; readonly ms: number } | undefined;
  #lastQueued: Promise<unknown> = Promise.resolve();

  /**
   * @param name of the exchange in exchanges_file.
   * @param signal aborts running requests and all waits.
   * @throws ServiceError `conflict` if ccxt is not installed or does not have the exchange.
   */
  constructor(
    name: string,
    definition: ExchangeDefinition,
    signal: AbortSignal,
    { onBlocked, connect, ...config }: ClientConfig = {},
  ) {
    this.#definition = definition;
    this.#signal = signal;
    this.#onBlocked = onBlocked;
    this.exchange = newExchange(this.ccxt, name, definition, config);
    connect?.(this.exchange);
    this.#recordRetryAfter();
  }

  /** Returns the symbol of the exchange for a symbol of a bot. */
  exchangeSymbol(symbol: string): string {
    return this.#definition.symbols?.[symbol] ?? symbol;
  }

  /** Whether the exchange rejected the request because of a rate limit. */
  isRateLimit(error: unknown): boolean {
    const { RateLimitExceeded, DDoSProtection } = this.ccxt;
    return error instanceof RateLimitExceeded || error instanceof DDoSProtection;
  }

  /**
   * Runs requests one at a time. Retries temporary failures, after the time that the exchange asks
   * for; other requests may run in between.
   */
  ask<T>(
    request: () => Promise<T>,
    { isUrgent = false, attempts = MOST_ATTEMPTS, quit, only = () => true }: AskOptions = {},
  ): Promise<T> {
    const { InvalidNonce, OperationFailed } = this.ccxt;
    let failure: unknown;
    const attempt = async (): Promise<T> => {
      if (quit?.aborted === true && failure !== undefined) throw failure;
      if (failure instanceof InvalidNonce) await this.#adjustClock();
      try {
        return await (isUrgent ? this.#runNow(request) : this.#enqueue(request));
      } catch (error) {
        failure = error;
        throw error;
      }
    };
    return retry(attempt, {
      ...REST_BACKOFF,
      signal: this.#signal,
      wake: quit,
      requestedMs: (error) => this.#retryAfter.get(error as Error) ?? 0,
      shouldRetry: (error, count) =>
        error instanceof OperationFailed &&
        only(error) &&
        count < attempts &&
        quit?.aborted !== true &&
        !(isUrgent && this.#blockedForMs() > LONGEST_URGENT_WAIT_MS),
    });
  }

  /** Disconnects all streams, so that their users reconnect. */
  drop(): void {
    // Terminates, because a dead connection would not answer a close frame.
    for (const { connection } of Object.values(this.exchange.clients)) connection?.terminate?.();
  }

  async close(): Promise<void> {
    this.drop();
    await this.exchange.close();
  }

  #recordRetryAfter(): void {
    const { exchange } = this;
    const handleRestResponse = exchange.handleRestResponse.bind(exchange);
    exchange.handleRestResponse = async (response, ...rest) => {
      try {
        return await handleRestResponse(response, ...rest);
      } catch (error) {
        const headers = Object.entries(exchange.getResponseHeaders(response));
        const text = headers.find(([header]) => header.toLowerCase() === 'retry-after')?.[1];
        const ms = 1000 * Number(text ?? 0);
        if (this.isRateLimit(error) && ms > 0) {
          this.#retryAfter.set(error as Error, Math.min(ms, LONGEST_RETRY_AFTER_MS));
        }
        throw error;
      }
    };
  }

  #enqueue<T>(request: () => Promise<T>): Promise<T> {
    const answer = this.#lastQueued.then(() =>
      this.#attempt(request, TIMEOUTS_PER_REQUEST * this.exchange.timeout),
    );
    this.#lastQueued = answer.catch(() => {});
    return answer;
  }

  async #runNow<T>(request: () => Promise<T>): Promise<T> {
    const left = this.#blockedForMs();
    if (left <= LONGEST_URGENT_WAIT_MS) return this.#attempt(request, this.exchange.timeout);
    const message = `the exchange accepts no requests for ${Math.ceil(left / 1000)} s`;
    throw new this.ccxt.RateLimitExceeded(message);
  }

  async #attempt<T>(request: () => Promise<T>, withinMs: number): Promise<T> {
    await this.#waitUntilUnblocked();
    const late = Promise.withResolvers<never>();
    const giveUp = (): void => late.reject(this.#signal.reason);
    const expire = (): void =>
      late.reject(new this.ccxt.RequestTimeout(`no complete response within ${withinMs} ms`));
    const timer = setTimeout(expire, withinMs);
    this.#signal.addEventListener('abort', giveUp);
    try {
      return await Promise.race([request(), late.promise]);
    } catch (error) {
      const ms = this.#retryAfter.get(error as Error) ?? 0;
      // Code -1015 of Binance limits orders only, so other requests continue.
      if (ms > 0 && !/-1015\b/.test(String(error))) {
        if (ms > this.#blockedForMs()) this.#block = { since: thisMoment(), ms };
        this.#onBlocked?.(Math.ceil(ms / 1000));
      }
      throw error;
    } finally {
      clearTimeout(timer);
      this.#signal.removeEventListener('abort', giveUp);
    }
  }

  #blockedForMs(): number {
    return this.#block === undefined ? 0 : this.#block.ms - msSince(this.#block.since);
  }

  async #waitUntilUnblocked(): Promise<void> {
    for (let left = this.#blockedForMs(); left > 0; left = this.#blockedForMs()) {
      await delay(left, undefined, { signal: this.#signal });
    }
  }

  /** If the exchange does not report its time now, the next attempt tries again. */
  async #adjustClock(): Promise<void> {
    const { exchange } = this;
    await this.#attempt(() => exchange.loadTimeDifference(), exchange.timeout).catch(() => {});
  }
}

/** @throws ServiceError `conflict` if the option `--exchange` is not the id of an exchange. */
export function checkExchangeId(id: string): void {
  const { pro } = requireCcxt();
  if (Object.hasOwn(pro, id)) return;
  const meant = closest(id, Object.keys(pro));
  const known = 'https://docs.ccxt.com lists the ids; a name in exchanges_file is possible too.';
  throw new ServiceError('conflict', `ccxt cannot stream data of ${id}`, {
    reason: 'unknown_exchange',
    remedy: meant ? `Did you mean --exchange ${meant}?` : `Correct --exchange: ${known}`,
  });
}

function newExchange(
  ccxt: Ccxt,
  name: string,
  definition: ExchangeDefinition,
  { defaults, options, onUnreadable, ...config }: ClientConfig,
): CcxtExchange {
  const Pro = Object.hasOwn(ccxt.pro, definition.ccxt) ? ccxt.pro[definition.ccxt] : undefined;
  if (Pro === undefined) {
    throw new ServiceError('conflict', `ccxt cannot stream data of ${definition.ccxt}`, {
      reason: 'unknown_exchange',
      remedy: `Correct ${name} in exchanges_file; https://docs.ccxt.com lists the exchanges.`,
    });
  }
  const exchange = new Pro({
    ...config,
    enableRateLimit: true,
    // Needed for ws:// URLs without TLS, for example of a gateway in a private network.
    httpAgent: new Agent(),
    // ccxt otherwise logs to standard output.
    log: (_time: unknown, what: unknown) => {
      if (what === 'onMessage JSON.parse') onUnreadable?.();
    },
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
  if (definition.urls !== undefined) exchange.urls = { ...exchange.urls, api: definition.urls };
  return exchange;
}

/** @throws ServiceError `conflict` if ccxt is not installed. */
export function requireCcxt(): Ccxt {
  try {
    // The CommonJS build is one file, which loads faster than its thousand modules.
    return createRequire(import.meta.url)('ccxt') as Ccxt;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new ServiceError('conflict', 'connecting to an exchange requires the package ccxt', {
      reason: 'not_installed',
      remedy: 'Install it beside service-local with `npm install ccxt`.',
    });
  }
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
