import type { Order } from './book-order.ts';
import { BookSide } from './side.ts';
import { equilibrium, type Equilibrium } from './uncross.ts';

/** Reasons for which the book itself ends an order. */
export type BookEnd = 'not_filled_at_once' | 'self_trade' | 'no_auction_fill';

/** Receives the events of a book in sequence; the orders already have their new state. */
export interface BookListener {
  /** The maker rested before; in an auction, it is the seller. */
  traded(taker: Order, maker: Order, price: number, quantity: number): void;
  ended(order: Order, reason: BookEnd): void;
  /** The price of the stop order was reached; it has not traded yet. */
  triggered(order: Order): void;
}

/**
 * Central limit order book: the best price trades first and, at one price, the oldest order. All
 * numbers are integers. The caller validates orders.
 */
export class Book {
  readonly bids = new BookSide('buy', ({ price }) => price);
  readonly asks = new BookSide('sell', ({ price }) => price);
  /** The lowest stop price is reached first. */
  readonly buyStops = new BookSide('sell', ({ stopPrice }) => stopPrice);
  readonly sellStops = new BookSide('buy', ({ stopPrice }) => stopPrice);
  /** Price of the last trade; NaN before the first. */
  last = Number.NaN;
  readonly #listener: BookListener;

  constructor(listener: BookListener) {
    this.#listener = listener;
  }

  /**
   * Trades an order as far as possible, and keeps or ends the remaining quantity. Then triggers the
   * stop orders whose prices were reached, one after another.
   */
  submit(order: Order): void {
    if (order.isParked && !this.#isReached(order)) {
      this.enter(order);
      return;
    }
    if (order.isParked) this.#trigger(order);
    this.#execute(order);
    this.releaseStops();
  }

  /** Adds an order without trading it. */
  enter(order: Order): void {
    this.#sideOf(order).add(order);
  }

  remove(order: Order): void {
    this.#sideOf(order).remove(order);
  }

  /** Whether an order would trade at once. */
  wouldCross({ side, price }: Pick<Order, 'side' | 'price'>): boolean {
    const best = (side === 'buy' ? this.asks : this.bids).best;
    return best !== undefined && reaches(side, price, best.price);
  }

  /**
   * Ends an auction: trades all matching orders at one price, by price and time, without self-trade
   * prevention. Remaining market orders end. Stop orders wait for `releaseStops`.
   */
  uncross(reference: number): Equilibrium | undefined {
    const auction = equilibrium(this.bids.levels(), this.asks.levels(), reference);
    let left = auction?.quantity ?? 0;
    while (left > 0) {
      const [buyer, seller] = [this.bids.best!, this.asks.best!];
      const quantity = Math.min(left, buyer.leaves, seller.leaves);
      this.#trade(buyer, seller, auction!.price, quantity);
      left -= quantity;
    }
    for (const side of [this.bids, this.asks]) {
      while (side.best !== undefined && !Number.isFinite(side.best.price)) {
        this.#end(side.best, 'no_auction_fill');
      }
    }
    return auction;
  }

  /** Triggers the stop orders that the last price has reached: nearest first, buyers before sellers. */
  releaseStops(): void {
    for (;;) {
      const order = [this.buyStops.best, this.sellStops.best].find(
        (best) => best !== undefined && this.#isReached(best),
      );
      if (order === undefined) return;
      this.remove(order);
      this.#trigger(order);
      this.#execute(order);
    }
  }

  /** All resting and parked orders. */
  orders(): Order[] {
    return [this.bids, this.asks, this.buyStops, this.sellStops].flatMap((side) => side.orders());
  }

  #execute(order: Order): void {
    if (order.timeInForce === 'fok' && !this.#canFill(order)) {
      this.#end(order, 'not_filled_at_once');
      return;
    }
    this.#match(order);
    if (order.leaves === 0) return;
    if (order.timeInForce === 'gtc' && Number.isFinite(order.price)) this.enter(order);
    else this.#end(order, 'not_filled_at_once');
  }

  #match(taker: Order): void {
    const against = taker.side === 'buy' ? this.asks : this.bids;
    for (let maker = against.best; maker !== undefined; maker = against.best) {
      if (taker.leaves === 0 || !reaches(taker.side, taker.price, maker.price)) return;
      if (maker.account === taker.account && taker.selfTrade !== 'none') {
        if (taker.selfTrade !== 'cancel_newest') this.#end(maker, 'self_trade');
        if (taker.selfTrade !== 'cancel_oldest') this.#end(taker, 'self_trade');
      } else {
        this.#trade(taker, maker, maker.price, Math.min(taker.leaves, maker.leaves));
      }
    }
  }

  #trade(taker: Order, maker: Order, price: number, quantity: number): void {
    this.last = price;
    for (const order of [taker, maker]) {
      if (order.leaves === quantity) this.remove(order);
      order.leaves -= quantity;
      order.filled += quantity;
      order.value += price * quantity;
      order.status = order.leaves === 0 ? 'filled' : 'partially_filled';
    }
    this.#listener.traded(taker, maker, price, quantity);
  }

  #end(order: Order, reason: BookEnd): void {
    this.remove(order);
    order.leaves = 0;
    order.status = 'expired';
    this.#listener.ended(order, reason);
  }

  /** Whether the whole order would trade; orders of the same account that may not trade do not count. */
  #canFill(taker: Order): boolean {
    let needed = taker.leaves;
    for (const maker of (taker.side === 'buy' ? this.asks : this.bids).orders()) {
      if (!reaches(taker.side, taker.price, maker.price)) return false;
      const isOwn = maker.account === taker.account && taker.selfTrade !== 'none';
      if (!isOwn) needed -= maker.leaves;
      else if (taker.selfTrade !== 'cancel_oldest') return false;
      if (needed <= 0) return true;
    }
    return false;
  }

  #trigger(order: Order): void {
    order.isParked = false;
    this.#listener.triggered(order);
  }

  #isReached({ side, stopPrice }: Order): boolean {
    return side === 'buy' ? this.last >= stopPrice : this.last <= stopPrice;
  }

  #sideOf({ side, isParked }: Order): BookSide {
    if (isParked) return side === 'buy' ? this.buyStops : this.sellStops;
    return side === 'buy' ? this.bids : this.asks;
  }
}

/** Whether an order of this side and limit may trade at the price. */
function reaches(side: Order['side'], limit: number, price: number): boolean {
  return side === 'buy' ? price <= limit : price >= limit;
}
