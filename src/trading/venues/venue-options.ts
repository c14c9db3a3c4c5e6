import type { CcxtExchange } from './ccxt-types.ts';
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
  readonly settleMs?: number;
  /** Interval of queries of working orders, ms. */
  readonly resyncMs?: number;
  /** Interval of queries of the rules, ms. */
  readonly termsMs?: number;
  /** Timeout of a request, ms. */
  readonly timeoutMs?: number;
}
