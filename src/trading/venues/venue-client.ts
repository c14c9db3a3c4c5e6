import { ServiceError } from '../../base/errors.ts';
import { CcxtClient, describeCcxtError, type AskOptions } from './ccxt-client.ts';
import type { CcxtExchange } from './ccxt-types.ts';
import { createRedactor, readCredentials, type Credentials } from './credentials.ts';
import type { ExchangeDefinition } from './exchanges-file.ts';

export interface ExchangeVenueOptions {
  /** Name of the exchange in exchanges_file. */
  readonly name: string;
  readonly definition: ExchangeDefinition;
  /** See `readCredentials`. */
  readonly credentialsDir: string;
  readonly deploymentId: string;
  /** Symbols of the universe, as named in the bot. */
  readonly symbols: readonly string[];
  /** Currency of the account, in which every symbol must be quoted. */
  readonly currency: string;
  readonly account: 'cash' | 'margin';
  /** Aborts running requests and all waits. */
  readonly signal: AbortSignal;
  /** Replaces the network of the exchange, for example by one in this process. */
  readonly connect?: (exchange: CcxtExchange) => void;
  /** Receives problems that are retried, without secrets. */
  readonly onTrouble?: (message: string) => void;
  /**
   * Decides whether an order may still be sent. Called right before it is sent, however long it
   * waited.
   */
  readonly mayPlace?: (client_order_id: string) => boolean;
  /** Time after which an unanswered order can no longer reach the exchange, ms. */
  readonly settleMs?: number | undefined;
  /** Interval of queries of working orders, ms. */
  readonly resyncMs?: number;
  /** Interval of queries of the rules, ms. */
  readonly termsMs?: number;
  /** Timeout of a request, ms. */
  readonly timeoutMs?: number | undefined;
}

/** The exchange rejects requests that arrive later than this after they were signed. */
const RECEIVE_WINDOW_MS = 5000;
/** Receive window, plus two seconds in case the local clock is ahead. */
export const SETTLE_MS = RECEIVE_WINDOW_MS + 2000;
const TIMEOUT_MS = 5000;
/** For the list of markets, which is large. */
const LOAD_TIMEOUT_MS = 10_000;
/** For cancels and the queries that confirm them. */
export const URGENT: AskOptions = { isUrgent: true, attempts: 2 };
/** For periodic queries, which are repeated anyway. */
export const WATCHING: AskOptions = { attempts: 2 };

/** Connection to a spot account at an exchange. */
export class VenueClient extends CcxtClient {
  readonly options: ExchangeVenueOptions;
  readonly #redact: (text: string) => string;

  /** @throws ServiceError as `CcxtClient` and `readCredentials` */
  constructor(options: ExchangeVenueOptions) {
    const { name, definition, signal, timeoutMs = LOAD_TIMEOUT_MS, onTrouble } = options;
    const credentials: Credentials = readCredentials(options.credentialsDir);
    super(name, definition, signal, {
      ...credentials,
      timeout: timeoutMs,
      connect: options.connect,
      onBlocked: (seconds) => onTrouble?.(`${name} accepts no requests for ${seconds} s`),
      onUnreadable: () => onTrouble?.(`${name} sent a message that is not valid JSON`),
      defaults: { adjustForTimeDifference: true },
      options: {
        recvWindow: RECEIVE_WINDOW_MS,
        defaultType: 'spot',
        fetchMarkets: { types: ['spot'] },
        // Avoids endpoints that need more permissions than trading.
        fetchCurrencies: false,
        fetchMargins: false,
      },
    });
    this.options = options;
    this.#redact = createRedactor(credentials);
    this.#requireLists();
    this.#guardOrders();
  }

  /** Loads the markets; later requests have a shorter timeout. */
  async load(): Promise<void> {
    await this.translateErrors(() => this.ask(() => this.exchange.loadMarkets()));
    this.exchange.timeout = this.options.timeoutMs ?? TIMEOUT_MS;
  }

  describe(error: unknown): string {
    return describeCcxtError(error, this.#redact);
  }

  /** Converts errors to ServiceErrors without secrets: errors of ccxt contain the signed URL. */
  async translateErrors<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      const { name, signal } = this.options;
      signal.throwIfAborted();
      if (error instanceof ServiceError) throw error;
      const why = this.describe(error);
      if (error instanceof this.ccxt.AuthenticationError) {
        throw new ServiceError('conflict', `${name} rejects the credentials: ${why}`, {
          reason: 'credentials_refused',
          remedy:
            'Check that the key is active, may trade spot, and is allowed from this IP address.',
        });
      }
      throw new ServiceError('exchange_unavailable', `${name} does not answer: ${why}`, {
        remedy: 'Try again later, or check that this machine can reach the exchange.',
      });
    }
  }

  #requireLists(): void {
    const { ccxt, exchange } = this;
    const parseOrders = exchange.parseOrders.bind(exchange);
    exchange.parseOrders = (orders, ...rest) => {
      // ccxt would turn another response into an empty list, as if no orders were open.
      if (Array.isArray(orders)) return parseOrders(orders, ...rest);
      throw new ccxt.BadResponse('expected a list of orders in the response');
    };
  }

  /**
   * Asks `mayPlace` after all waits, including waits of ccxt. From here on, the receive window
   * limits the delay.
   */
  #guardOrders(): void {
    const { exchange } = this;
    const sign = exchange.sign.bind(exchange);
    exchange.sign = (path, api, method, params, ...rest) => {
      const isOrder = method === 'POST' && path === 'order';
      if (isOrder && this.options.mayPlace?.(String(params['newClientOrderId'])) === false) {
        throw new OrderNotSent();
      }
      return sign(path, api, method, params, ...rest);
    };
  }
}

/** `mayPlace` was false, so the order did not leave this process. */
export class OrderNotSent extends ServiceError {
  constructor() {
    super('exchange_unavailable', 'the order may no longer be sent', { reason: 'not_sent' });
  }
}
