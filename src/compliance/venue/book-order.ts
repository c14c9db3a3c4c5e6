export type Side = 'buy' | 'sell';
export type OrderType = 'market' | 'limit' | 'stop' | 'stop_limit';
export type TimeInForce = 'gtc' | 'ioc' | 'fok';
/** Self-trade prevention: which of two orders of one account ends instead of trading. */
export type SelfTrade = 'none' | 'cancel_newest' | 'cancel_oldest' | 'cancel_both';
export type OrderStatus = 'new' | 'partially_filled' | 'filled' | 'canceled' | 'expired';

/** Prices and quantities are whole numbers of the instrument's price and quantity units. */
export interface OrderTerms {
  readonly clientOrderId: string;
  readonly side: Side;
  readonly type: OrderType;
  readonly timeInForce: TimeInForce;
  readonly quantity: number;
  /** Limit price, required by `limit` and `stop_limit`. */
  readonly price?: number;
  /** Required by `stop` and `stop_limit`. */
  readonly stopPrice?: number;
  readonly postOnly?: boolean;
}

/** One side of a trade, as its owner sees it. */
export interface Fill {
  readonly tradeId: number;
  readonly price: number;
  readonly quantity: number;
  readonly isMaker: boolean;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly fee: number;
  readonly feeAsset: string;
}

/** An order as the exchange holds it. */
export interface Order {
  /** Counts up over all instruments, from 1. */
  readonly id: number;
  /** Index of the owner. */
  readonly account: number;
  /** Index of the instrument. */
  readonly instrument: number;
  readonly clientOrderId: string;
  readonly side: Side;
  readonly type: OrderType;
  readonly timeInForce: TimeInForce;
  readonly postOnly: boolean;
  readonly selfTrade: SelfTrade;
  /** Worst price to trade at; ±Infinity for an order without a limit. */
  readonly price: number;
  /** 0 for an order without a stop price. */
  readonly stopPrice: number;
  readonly quantity: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** Whether it is a stop order whose price has not been reached. */
  isParked: boolean;
  filled: number;
  /** Quantity that can still be filled. */
  leaves: number;
  /** Sum of price × quantity over its fills. */
  value: number;
  status: OrderStatus;
  /** Time of the last change, ms since the epoch. */
  updated: number;
  fills: Fill[];
  /** Priority among orders of the same price: the lowest trades first. */
  rank: number;
}

export interface OrderOrigin extends Pick<Order, 'id' | 'account' | 'instrument' | 'time'> {
  readonly selfTrade?: SelfTrade;
}

export function makeOrder(origin: OrderOrigin, terms: OrderTerms): Order {
  const { side, type, quantity, price = 0, stopPrice = 0, postOnly = false } = terms;
  const hasLimit = type === 'limit' || type === 'stop_limit';
  const hasStop = type === 'stop' || type === 'stop_limit';
  return {
    ...terms,
    selfTrade: 'none',
    ...origin,
    postOnly,
    price: hasLimit ? price : side === 'buy' ? Infinity : -Infinity,
    stopPrice: hasStop ? stopPrice : 0,
    isParked: hasStop,
    filled: 0,
    leaves: quantity,
    value: 0,
    status: 'new',
    updated: origin.time,
    fills: [],
    rank: 0,
  };
}

/** Whether the order can still be filled or canceled. */
export function isLive({ status }: Order): boolean {
  return status === 'new' || status === 'partially_filled';
}
