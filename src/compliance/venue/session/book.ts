import type { Order } from './order.ts';
import { BookSide } from './side.ts';
import { equilibrium, type Equilibrium } from './uncross.ts';

/** Why the book itself ends an order. */
export type BookEnd = 'not_filled_at_once' | 'self_trade' | 'no_auction_fill' | 'volatility';

/** Told what happens, in the order in which it happens; the orders are as they are after it. */
export interface BookListener {
  /** The maker rested before; in an auction, where nobody takes, it is the seller. */
  traded(taker: Order, maker: Order, price: number, quantity: number): void;
  ended(order: Order, reason: BookEnd): void;
  /** A stop whose price was reached, before it trades. */
  triggered(order: Order): void;
  /** Before an amended order trades under its new terms. */
  amended(order: Order): void;
}

/**
 * A central limit order book: the best price trades first, and at one price the oldest order. All
 * numbers are whole. It knows nothing of sessions, accounts or the time: what an order may be, and
 * when, is decided before it comes here.
 */
export class Book {
  readonly bids = new BookSide('buy', true);
  readonly asks = new BookSide('sell', true);
  /** Buy stops wait like sellers do, the lowest first to be reached. */
  readonly buyStops = new BookSide('sell', false);
  readonly sellStops = new BookSide('buy', false);
  /** Of the last trade; NaN before the first. */
  last = Number.NaN;
  /** Prices beyond which nothing trades without an auction. */
  low = -Infinity;
  high = Infinity;
  readonly #listener: BookListener;

  constructor(listener: BookListener) {
    this.#listener = listener;
  }

  /**
   * Trades an order as far as it can, and keeps or ends what is left; then the stops that this sets
   * off, each in turn. A stop whose price has been reached already trades at once.
   *
   * @returns whether trading has to stop for an auction because the next trade would be at a price
   *   beyond `low` or `high`. What is left of the order rests then; the book may be crossed.
   */
  submit(order: Order): boolean {
    if (order.isParked && !this.#isReached(order)) {
      this.enter(order);
      return false;
    }
    if (order.isParked) this.#trigger(order);
    return this.#execute(order) || this.releaseStops();
  }

  /** Keeps an order without trading it, for the next auction or for its stop price. */
  enter(order: Order): void {
    this.#sideOf(order).append(order, order.isParked ? order.stopPrice : order.price);
  }

  /** Takes an order out, whether it rests, is parked, or neither. */
  remove(order: Order): void {
    if (order.level !== undefined) this.#sideOf(order).remove(order);
  }

  /**
   * Changes a resting order. To ask for less keeps its place; another price, or more, makes it the
   * youngest of its price, and it may trade at once.
   *
   * @param quantity in all, above what is filled.
   * @param trades whether trading is continuous.
   * @returns as `submit` does.
   */
  amend(order: Order, { price, stopPrice, quantity }: Amendment, trades: boolean): boolean {
    const samePlace = price === order.price && stopPrice === order.stopPrice;
    const more = quantity - order.quantity;
    if (samePlace && more <= 0) {
      this.#sideOf(order).grow(order.level!, more);
      order.quantity = quantity;
      order.leaves += more;
      this.#listener.amended(order);
      return false;
    }
    this.remove(order);
    order.price = price;
    order.stopPrice = stopPrice;
    order.quantity = quantity;
    order.leaves += more;
    this.#listener.amended(order);
    if (trades) return this.submit(order);
    this.enter(order);
    return false;
  }

  /** Whether it would trade at once, were it to come now. */
  wouldCross({ side, price }: Pick<Order, 'side' | 'price'>): boolean {
    const best = (side === 'buy' ? this.asks : this.bids).best;
    return best !== undefined && reaches(side, price, best.price);
  }

  indicative(reference: number): Equilibrium | undefined {
    return equilibrium(this.bids.levels, this.asks.levels, reference);
  }

  /**
   * Trades all that meets at one price, by price and time; self-trade prevention does not look here.
   * Orders at any price that are left over end. Stops that this sets off wait for `releaseStops`.
   */
  uncross(reference: number): Equilibrium | undefined {
    const auction = this.indicative(reference);
    let left = auction?.quantity ?? 0;
    while (left > 0) {
      const buyer = this.bids.best!.head!;
      const seller = this.asks.best!.head!;
      const quantity = Math.min(left, buyer.leaves, seller.leaves);
      this.#trade(buyer, seller, auction!.price, quantity);
      left -= quantity;
    }
    for (const side of [this.bids, this.asks]) {
      while (side.best !== undefined && !Number.isFinite(side.best.price)) {
        this.#end(side.best.head!, 'no_auction_fill');
      }
    }
    return auction;
  }

  /** Lets the stops trade that the last price has reached: the nearest first, buyers before sellers. */
  releaseStops(): boolean {
    for (;;) {
      const order = this.#reachedStop();
      if (order === undefined) return false;
      this.remove(order);
      this.#trigger(order);
      if (this.#execute(order)) return true;
    }
  }

  /** Every order that waits for something. */
  orders(): Order[] {
    const sides = [this.bids, this.asks, this.buyStops, this.sellStops];
    return sides.flatMap((side) => [...side.orders()]);
  }

  #execute(order: Order): boolean {
    if (order.timeInForce === 'fok' && !this.#canFill(order)) {
      this.#end(order, 'not_filled_at_once');
      return false;
    }
    const isStopped = this.#match(order);
    if (order.leaves === 0) return isStopped;
    const isAtOnce = order.timeInForce === 'ioc' || order.timeInForce === 'fok';
    if (isAtOnce) this.#end(order, isStopped ? 'volatility' : 'not_filled_at_once');
    else if (isStopped || Number.isFinite(order.price)) this.enter(order);
    else this.#end(order, 'not_filled_at_once');
    return isStopped;
  }

  #match(taker: Order): boolean {
    const against = taker.side === 'buy' ? this.asks : this.bids;
    while (taker.leaves > 0) {
      const level = against.best;
      if (level === undefined || !reaches(taker.side, taker.price, level.price)) return false;
      if (level.price < this.low || level.price > this.high) return true;
      const maker = level.head!;
      if (maker.account === taker.account && taker.selfTrade !== 'none') {
        if (taker.selfTrade !== 'cancel_newest') this.#end(maker, 'self_trade');
        if (taker.selfTrade !== 'cancel_oldest') this.#end(taker, 'self_trade');
      } else {
        this.#trade(taker, maker, level.price, Math.min(taker.leaves, maker.leaves));
      }
    }
    return false;
  }

  #trade(taker: Order, maker: Order, price: number, quantity: number): void {
    this.last = price;
    this.#fill(taker, price, quantity);
    this.#fill(maker, price, quantity);
    this.#listener.traded(taker, maker, price, quantity);
  }

  #fill(order: Order, price: number, quantity: number): void {
    const { level } = order;
    if (level !== undefined && order.leaves > quantity) this.#sideOf(order).grow(level, -quantity);
    else if (level !== undefined) this.#sideOf(order).remove(order);
    order.leaves -= quantity;
    order.filled += quantity;
    order.value += price * quantity;
    order.status = order.leaves === 0 ? 'filled' : 'partially_filled';
  }

  #end(order: Order, reason: BookEnd): void {
    this.remove(order);
    order.leaves = 0;
    order.status = 'canceled';
    this.#listener.ended(order, reason);
  }

  /** Whether all of it would trade: own orders that it may not meet give nothing, or are the end. */
  #canFill(taker: Order): boolean {
    const { levels } = taker.side === 'buy' ? this.asks : this.bids;
    let needed = taker.leaves;
    for (let at = levels.length - 1; at >= 0; at -= 1) {
      const level = levels[at]!;
      const isBeyond = level.price < this.low || level.price > this.high;
      if (isBeyond || !reaches(taker.side, taker.price, level.price)) return false;
      for (let maker = level.head; maker !== undefined; maker = maker.next) {
        const isOwn = maker.account === taker.account && taker.selfTrade !== 'none';
        if (!isOwn) needed -= maker.leaves;
        else if (taker.selfTrade !== 'cancel_oldest') return false;
        if (needed <= 0) return true;
      }
    }
    return false;
  }

  #trigger(order: Order): void {
    order.isParked = false;
    this.#listener.triggered(order);
  }

  #reachedStop(): Order | undefined {
    const buyer = this.buyStops.best?.head;
    if (buyer !== undefined && this.#isReached(buyer)) return buyer;
    const seller = this.sellStops.best?.head;
    return seller !== undefined && this.#isReached(seller) ? seller : undefined;
  }

  #isReached({ side, stopPrice }: Order): boolean {
    return side === 'buy' ? this.last >= stopPrice : this.last <= stopPrice;
  }

  #sideOf({ side, isParked }: Order): BookSide {
    if (isParked) return side === 'buy' ? this.buyStops : this.sellStops;
    return side === 'buy' ? this.bids : this.asks;
  }
}

/** New terms of an order; ±Infinity and 0 as in `Order`. */
export interface Amendment {
  readonly price: number;
  readonly stopPrice: number;
  readonly quantity: number;
}

/** Whether an order of this side and limit may trade at the price. */
function reaches(side: Order['side'], limit: number, price: number): boolean {
  return side === 'buy' ? price <= limit : price >= limit;
}
