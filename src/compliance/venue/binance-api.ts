/**
 * The part of the Binance spot API that ccxt needs to trade and to fetch bars
 * (https://developers.binance.com/docs/binance-spot-api-docs), on the books of `Matching`.
 */
import { createHmac } from 'node:crypto';
import { MINUTE } from '../../base/durations.ts';
import { parseTimeframe } from '../../market/timeframe.ts';
import { decimalText, type Kline, type Klines } from './klines.ts';
import { AUCTIONS, idOf, type Listing, type Rejection } from './listing.ts';
import type { Change, Matching } from './matching.ts';
import { isLive, type Fill, type Order, type OrderTerms } from './book-order.ts';

export interface ApiRequest {
  /** Method and path below `/api/v3`, such as `POST /order`. */
  readonly call: string;
  /** Parameters of the URL or of the body. */
  readonly query: string;
  /** Value of the header `X-MBX-APIKEY`. */
  readonly apiKey: string | undefined;
}

export interface ApiResponse {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

class ApiError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Codes and messages of the exchange, see `handleErrors` of ccxt's `binance`. */
const REJECTIONS: Readonly<Record<Rejection, readonly [code: number, message: string]>> = {
  unknown_instrument: [-1121, 'Invalid symbol.'],
  market_closed: [-1013, 'Market is closed.'],
  tick: [-1013, 'Filter failure: PRICE_FILTER'],
  lot: [-1013, 'Filter failure: LOT_SIZE'],
  price_band: [-1013, 'Filter failure: PERCENT_PRICE_BY_SIDE'],
  min_value: [-1013, 'Filter failure: NOTIONAL'],
  order_type: [-1116, 'Invalid orderType.'],
  duplicate: [-2010, 'Duplicate order sent.'],
  post_only_would_cross: [-2010, 'Order would immediately match and take.'],
  insufficient_funds: [-2010, 'Account has insufficient balance for requested action.'],
};

const UNKNOWN_ORDER = [-2011, 'Unknown order sent.'] as const;

export class BinanceApi {
  readonly #matching: Matching;
  readonly #klines: Klines;
  readonly #now: () => number;
  /** Answer to each call; the account is that of the API key. */
  readonly #calls: Readonly<Record<string, (params: URLSearchParams, account: number) => unknown>>;

  constructor(matching: Matching, klines: Klines, now: () => number) {
    this.#matching = matching;
    this.#klines = klines;
    this.#now = now;
    this.#calls = {
      'GET /time': () => ({ serverTime: this.#now() }),
      'GET /exchangeInfo': (params) => this.#exchangeInfo(params),
      'GET /klines': (params) => this.#barsOf(params),
      'POST /order': (params, account) => this.#place(params, account),
      'GET /order': (params, account) =>
        shownOrder(
          this.#find(params, account, [-2013, 'Order does not exist.']),
          this.#listing(params),
        ),
      'DELETE /order': (params, account) => this.#cancel(params, account),
      'GET /openOrders': (params, account) => this.#openOrders(params, account),
      'GET /myTrades': (params, account) => this.#tradesOf(params, account),
      'GET /account': (_params, account) => this.#account(account),
    };
  }

  answer({ call, query, apiKey }: ApiRequest): ApiResponse {
    const params = new URLSearchParams(query);
    try {
      const isPublic =
        call === 'GET /time' || call === 'GET /exchangeInfo' || call === 'GET /klines';
      const account = isPublic ? -1 : this.#authenticate(params, query, apiKey);
      return { status: 200, body: this.#calls[call]!(params, account) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { status: 400, body: { code: error.code, msg: error.message } };
    }
  }

  /** Index of the account that may read a user data stream; undefined if the signature is wrong. */
  accountOfStream(params: Readonly<Record<string, string | number>>): number | undefined {
    const { signature, ...rest } = params;
    const query = Object.keys(rest).sort();
    const text = query.map((name) => `${name}=${rest[name]}`).join('&');
    return this.#accountOf(String(rest['apiKey']), text, String(signature));
  }

  /** Event of the user data stream. */
  executionReport(order: Order, change: Change, fill?: Fill): object {
    const { setup, id } = this.#matching.listings[order.instrument]!;
    const { priceUnit, quantityUnit } = setup;
    const isCancel = change === 'canceled';
    return {
      e: 'executionReport',
      E: this.#now(),
      s: id,
      c: isCancel ? `cancel-of-${order.id}` : order.clientOrderId,
      S: order.side.toUpperCase(),
      o: TYPES[order.postOnly ? 'post_only' : order.type],
      f: order.timeInForce.toUpperCase(),
      q: decimalText(order.quantity * quantityUnit),
      p: priceText(order.price, priceUnit),
      P: priceText(order.stopPrice, priceUnit),
      C: isCancel ? order.clientOrderId : '',
      x: change === 'revised' ? 'TRADE_CORRECT' : change.toUpperCase(),
      X: order.status.toUpperCase(),
      i: order.id,
      l: decimalText((fill?.quantity ?? 0) * quantityUnit),
      z: decimalText(order.filled * quantityUnit),
      L: priceText(fill?.price ?? 0, priceUnit),
      n: decimalText(fill?.fee ?? 0),
      N: fill?.feeAsset ?? null,
      T: order.updated,
      t: fill?.tradeId ?? -1,
      m: fill?.isMaker ?? false,
      O: order.time,
      Z: decimalText(order.value * priceUnit * quantityUnit),
    };
  }

  #authenticate(params: URLSearchParams, query: string, apiKey: string | undefined): number {
    const unsigned = query.slice(0, query.lastIndexOf('&signature='));
    if (!this.#matching.accounts.some(({ setup }) => setup.apiKey === apiKey)) {
      throw new ApiError(-2015, 'Invalid API-key, IP, or permissions for action.');
    }
    const account = this.#accountOf(apiKey!, unsigned, params.get('signature'));
    if (account === undefined) {
      throw new ApiError(-1022, 'Signature for this request is not valid.');
    }
    const sent = Number(params.get('timestamp'));
    if (sent > this.#now() + 1000 || this.#now() - sent > Number(params.get('recvWindow'))) {
      throw new ApiError(-1021, 'Timestamp for this request is outside of the recvWindow.');
    }
    return account;
  }

  #accountOf(apiKey: string, text: string, signature: string | null): number | undefined {
    const at = this.#matching.accounts.findIndex(({ setup }) => setup.apiKey === apiKey);
    if (at < 0) return undefined;
    const { secret } = this.#matching.accounts[at]!.setup;
    return createHmac('sha256', secret).update(text).digest('hex') === signature ? at : undefined;
  }

  /** Fails for all symbols if one is unknown. */
  #exchangeInfo(params: URLSearchParams): object {
    const wanted = JSON.parse(params.get('symbols') ?? 'null') as readonly string[] | null;
    const listings =
      wanted === null
        ? this.#matching.listings.filter(({ isDeleted }) => !isDeleted)
        : wanted.map((id) => this.#listed(id));
    return { timezone: 'UTC', serverTime: this.#now(), symbols: listings.map(marketOf) };
  }

  #barsOf(params: URLSearchParams): unknown[] {
    const since = Number(params.get('startTime') ?? 0);
    const interval = params.get('interval')!.replace('M', 'mo');
    return this.#klines
      .of(this.#listed(params.get('symbol')).id, parseTimeframe(interval))
      .filter(([time]) => time >= since)
      .slice(0, Number(params.get('limit') ?? 500))
      .map(([time, kline]) => [time, ...kline, time + MINUTE - 1, '0', 1, '0', '0', '0']);
  }

  #place(params: URLSearchParams, account: number): object {
    const listing = this.#listed(params.get('symbol'));
    const terms = termsOf(params, listing);
    const order = this.#matching.place(account, listing, terms);
    if (typeof order === 'string') throw new ApiError(...REJECTIONS[order]);
    const { priceUnit, quantityUnit } = listing.setup;
    const fills = order.fills.map((fill) => ({
      price: priceText(fill.price, priceUnit),
      qty: decimalText(fill.quantity * quantityUnit),
      commission: decimalText(fill.fee),
      commissionAsset: fill.feeAsset,
      tradeId: fill.tradeId,
    }));
    return { ...shownOrder(order, listing), transactTime: order.updated, fills };
  }

  #cancel(params: URLSearchParams, account: number): object {
    const order = this.#find(params, account, UNKNOWN_ORDER);
    if (!isLive(order)) throw new ApiError(...UNKNOWN_ORDER);
    this.#matching.end(order, 'canceled');
    const shown = shownOrder(order, this.#listing(params));
    return {
      ...shown,
      origClientOrderId: order.clientOrderId,
      clientOrderId: `cancel-of-${order.id}`,
    };
  }

  #openOrders(params: URLSearchParams, account: number): object[] {
    const listing = this.#listing(params);
    return this.#matching
      .openOrders(account)
      .filter(({ instrument }) => instrument === listing.index)
      .map((order) => shownOrder(order, listing));
  }

  #tradesOf(params: URLSearchParams, account: number): object[] {
    const order = this.#matching.orders[Number(params.get('orderId')) - 1]!;
    if (order.account !== account) return [];
    const { id, setup } = this.#matching.listings[order.instrument]!;
    const { priceUnit, quantityUnit } = setup;
    return order.fills
      .filter(({ tradeId }) => tradeId >= Number(params.get('fromId') ?? 0))
      .slice(0, Number(params.get('limit') ?? 500))
      .map((fill) => ({
        symbol: id,
        id: fill.tradeId,
        orderId: order.id,
        price: priceText(fill.price, priceUnit),
        qty: decimalText(fill.quantity * quantityUnit),
        quoteQty: decimalText(fill.quantity * quantityUnit * fill.price * priceUnit),
        commission: decimalText(fill.fee),
        commissionAsset: fill.feeAsset,
        time: fill.time,
        isBuyer: order.side === 'buy',
        isMaker: fill.isMaker,
        isBestMatch: true,
      }));
  }

  #account(account: number): object {
    const balances = [...this.#matching.balancesOf(account)].map(([asset, total]) => {
      const locked = this.#matching.lockedOf(account, asset);
      return { asset, free: decimalText(total - locked), locked: decimalText(locked) };
    });
    return { accountType: 'SPOT', canTrade: true, balances };
  }

  #find(
    params: URLSearchParams,
    account: number,
    missing: readonly [code: number, message: string],
  ): Order {
    const order = this.#matching.find(account, params.get('origClientOrderId') ?? '');
    if (order === undefined) throw new ApiError(...missing);
    return order;
  }

  /** Returns the instrument even if it is delisted. */
  #listing(params: URLSearchParams): Listing {
    const listing = this.#matching.listing(params.get('symbol') ?? '');
    if (listing === undefined) throw new ApiError(...REJECTIONS.unknown_instrument);
    return listing;
  }

  #listed(id: string | null): Listing {
    const listing = this.#matching.listing(id ?? '');
    if (listing === undefined || listing.isDeleted) {
      throw new ApiError(...REJECTIONS.unknown_instrument);
    }
    return listing;
  }
}

/** Message of a stream of bars. */
export function klineEvent(id: string, opened: number, kline: Kline, now: number): object {
  const [o, h, l, c, v] = kline;
  const isClosed = now >= opened + MINUTE;
  const k = { t: opened, T: opened + MINUTE - 1, s: id, i: '1m', o, c, h, l, v, x: isClosed };
  return { e: 'kline', E: now, s: id, k };
}

const TYPES = {
  market: 'MARKET',
  limit: 'LIMIT',
  post_only: 'LIMIT_MAKER',
  stop: 'STOP_LOSS',
  stop_limit: 'STOP_LOSS_LIMIT',
} as const;

function termsOf(params: URLSearchParams, { setup }: Listing): OrderTerms {
  const { priceUnit, quantityUnit } = setup;
  const number = (name: string, unit: number): number => ontoGrid(Number(params.get(name)) / unit);
  const type = Object.entries(TYPES).find(([, name]) => name === params.get('type'))?.[0];
  if (type === undefined) throw new ApiError(...REJECTIONS.order_type);
  return {
    clientOrderId: params.get('newClientOrderId') ?? '',
    side: params.get('side') === 'BUY' ? 'buy' : 'sell',
    type: type === 'post_only' ? 'limit' : (type as OrderTerms['type']),
    timeInForce: (params.get('timeInForce') ?? 'GTC').toLowerCase() as OrderTerms['timeInForce'],
    quantity: number('quantity', quantityUnit),
    ...(params.has('price') && { price: number('price', priceUnit) }),
    ...(params.has('stopPrice') && { stopPrice: number('stopPrice', priceUnit) }),
    ...(type === 'post_only' && { postOnly: true }),
  };
}

/** Removes the rounding error of a count of units. A count that is not whole stays so, and is rejected. */
function ontoGrid(count: number): number {
  const whole = Math.round(count);
  return Math.abs(count - whole) < 1e-6 ? whole : count;
}

function priceText(price: number, unit: number): string {
  return Number.isFinite(price) ? decimalText(price * unit) : '0';
}

function shownOrder(order: Order, { id, setup }: Listing): object {
  const { priceUnit, quantityUnit } = setup;
  return {
    symbol: id,
    orderId: order.id,
    orderListId: -1,
    clientOrderId: order.clientOrderId,
    price: priceText(order.price, priceUnit),
    origQty: decimalText(order.quantity * quantityUnit),
    executedQty: decimalText(order.filled * quantityUnit),
    cummulativeQuoteQty: decimalText(order.value * priceUnit * quantityUnit),
    status: order.status.toUpperCase(),
    timeInForce: order.timeInForce.toUpperCase(),
    type: TYPES[order.postOnly ? 'post_only' : order.type],
    side: order.side.toUpperCase(),
    stopPrice: priceText(order.stopPrice, priceUnit),
    time: order.time,
    updateTime: order.updated,
    isWorking: true,
  };
}

/** Entry of `exchangeInfo`. */
function marketOf(listing: Listing): object {
  const { phase, setup, terms } = listing;
  const { base, quote, priceUnit, quantityUnit } = setup;
  const step = decimalText(terms.lot * quantityUnit);
  const tickSize = decimalText(terms.tick * priceUnit);
  return {
    symbol: idOf(setup.symbol),
    status: AUCTIONS.has(phase) ? 'AUCTION_MATCH' : STATUS[phase as keyof typeof STATUS],
    baseAsset: base,
    baseAssetPrecision: 8,
    quoteAsset: quote,
    quotePrecision: 8,
    orderTypes: Object.values(TYPES),
    isSpotTradingAllowed: true,
    filters: [
      { filterType: 'PRICE_FILTER', minPrice: tickSize, maxPrice: '1000000000', tickSize },
      {
        filterType: 'LOT_SIZE',
        minQty: step,
        maxQty: decimalText(terms.maxQuantity * quantityUnit),
        stepSize: step,
      },
      { filterType: 'NOTIONAL', minNotional: decimalText(terms.minValue), applyMinToMarket: true },
    ],
    permissions: ['SPOT'],
  };
}

const STATUS = { continuous: 'TRADING', halt: 'HALT', closed: 'END_OF_DAY' } as const;
