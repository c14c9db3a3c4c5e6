export type Side = 'buy' | 'sell';
export type OrderType = 'market' | 'limit' | 'stop' | 'stop_limit';
export type TimeInForce = 'gtc' | 'day' | 'gtd' | 'ioc' | 'fok';
/** What becomes of an order that would trade with one of the same account; common venue practice. */
export type SelfTrade = 'none' | 'cancel_newest' | 'cancel_oldest' | 'cancel_both';
export type OrderStatus =
  | 'new'
  | 'partially_filled'
  | 'filled'
  | 'canceled'
  | 'expired'
  | 'rejected';

/** What an order asks for: whole numbers of the instrument's price and quantity units. */
export interface OrderTerms {
  readonly side: Side;
  readonly order_type: OrderType;
  readonly time_in_force: TimeInForce;
  readonly quantity: number;
  /** Of `limit` and `stop_limit`. */
  readonly price?: number | undefined;
  /** Of `stop` and `stop_limit`. */
  readonly stop_price?: number | undefined;
  readonly post_only?: boolean | undefined;
  /** Of `gtd`, ms since the epoch. */
  readonly expire_at?: number | undefined;
  /** `none` where it is absent. */
  readonly self_trade?: SelfTrade | undefined;
}

/** All orders of one price, the oldest first. */
export interface Level {
  readonly side: Side;
  readonly price: number;
  head: Order | undefined;
  tail: Order | undefined;
  /** Sum of what its orders leave. */
  quantity: number;
  count: number;
  /** Whether it is listed among those that changed. */
  isChanged: boolean;
}

/**
 * An order as the venue holds it: what was asked for, how far it got, and where it stands in the
 * book. The orders of a price are a doubly linked list through the orders themselves, so that taking
 * one out of the middle costs the same however many there are, and nothing is allocated for it.
 */
export interface Order {
  /** Counts up over all instruments. */
  readonly id: number;
  /** Number of the owner; orders of one owner are kept from trading with each other. */
  readonly account: number;
  /** Number of the order session; -1 for a participant without one. */
  readonly session: number;
  /** Number of the instrument. */
  readonly instrument: number;
  readonly side: Side;
  readonly type: OrderType;
  readonly timeInForce: TimeInForce;
  readonly postOnly: boolean;
  readonly selfTrade: SelfTrade;
  /** 0 where there is no such time. */
  readonly expireAt: number;
  /** Changes with each amendment. */
  clientOrderId: string;
  /** The worst price to trade at; ±Infinity where any will do. */
  price: number;
  /** 0 where there is none. */
  stopPrice: number;
  /** Whether it is a stop whose price has not been reached. */
  isParked: boolean;
  /** Whether mass cancels fail to reach it, as scripted. */
  isPinned: boolean;
  quantity: number;
  filled: number;
  /** What may still be filled. */
  leaves: number;
  /** Sum of price × quantity over its fills. */
  value: number;
  status: OrderStatus;
  /** Where it rests; undefined while it does not. */
  level: Level | undefined;
  previous: Order | undefined;
  next: Order | undefined;
}

/** Who an order is of, and what it is called. */
export type OrderOrigin = Pick<
  Order,
  'id' | 'account' | 'session' | 'instrument' | 'clientOrderId'
>;

export function makeOrder(origin: OrderOrigin, terms: OrderTerms): Order {
  const { id, account, session, instrument, clientOrderId } = origin;
  const { side, order_type: type, quantity } = terms;
  const anyPrice = side === 'buy' ? Infinity : -Infinity;
  const hasLimit = type === 'limit' || type === 'stop_limit';
  const isParked = type === 'stop' || type === 'stop_limit';
  return {
    id,
    account,
    session,
    instrument,
    side,
    type,
    timeInForce: terms.time_in_force,
    postOnly: terms.post_only === true,
    selfTrade: terms.self_trade ?? 'none',
    expireAt: terms.expire_at ?? 0,
    clientOrderId,
    price: hasLimit ? (terms.price ?? 0) : anyPrice,
    stopPrice: isParked ? (terms.stop_price ?? 0) : 0,
    isParked,
    isPinned: false,
    quantity,
    filled: 0,
    leaves: quantity,
    value: 0,
    status: 'new',
    level: undefined,
    previous: undefined,
    next: undefined,
  };
}

/** Whether it may still be filled or canceled. */
export function isLive({ status }: Order): boolean {
  return status === 'new' || status === 'partially_filled';
}
