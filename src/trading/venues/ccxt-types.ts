/** Types of the parts of ccxt in use. */

export interface CcxtExchange {
  readonly has: Readonly<Record<string, unknown>>;
  readonly timeframes: Readonly<Record<string, unknown>>;
  /** See https://docs.ccxt.com/#/README?id=features. */
  readonly features?: {
    readonly spot?: { readonly fetchOHLCV?: { readonly limit?: number } | null } | null;
  };
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
  readonly pro: Readonly<Record<string, new (config: object) => CcxtExchange>>;
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
