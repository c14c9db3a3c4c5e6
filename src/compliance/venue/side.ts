import type { Order, Side } from './book-order.ts';

/** Price and total quantity of the orders at it. */
export interface Level {
  readonly price: number;
  readonly quantity: number;
}

/** Orders of one side of a book by price and, within a price, by rank. */
export class BookSide {
  /** The order that trades first comes last, where adding and removing cost least. */
  readonly #orders: Order[] = [];
  /** Price by which an order is sorted. */
  readonly #priceOf: (order: Order) => number;
  /** Multiplied by this sign, the best price is the highest. */
  readonly #sign: 1 | -1;
  #added = 0;

  /** @param best side whose best price is the highest (`buy`) or the lowest (`sell`). */
  constructor(best: Side, priceOf: (order: Order) => number) {
    this.#sign = best === 'buy' ? 1 : -1;
    this.#priceOf = priceOf;
  }

  get best(): Order | undefined {
    return this.#orders.at(-1);
  }

  /** Adds an order behind all others of its price. */
  add(order: Order): void {
    this.#added += 1;
    order.rank = this.#added;
    this.#orders.splice(this.#indexOf(order), 0, order);
  }

  /** Removes an order; does nothing if it is not here. */
  remove(order: Order): void {
    const at = this.#indexOf(order);
    if (this.#orders[at] === order) this.#orders.splice(at, 1);
  }

  /** Orders in the sequence in which they trade. */
  orders(): Order[] {
    return this.#orders.toReversed();
  }

  /** Levels, best price first. */
  levels(): Level[] {
    const levels: { price: number; quantity: number }[] = [];
    for (const order of this.orders()) {
      const price = this.#priceOf(order);
      const last = levels.at(-1);
      if (last?.price === price) last.quantity += order.leaves;
      else levels.push({ price, quantity: order.leaves });
    }
    return levels;
  }

  /** Index of the order, or the index at which it belongs. */
  #indexOf(order: Order): number {
    let low = 0;
    let high = this.#orders.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isBefore(order, this.#orders[middle]!)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether `a` trades before `b`. */
  #isBefore(a: Order, b: Order): boolean {
    const [first, second] = [this.#sign * this.#priceOf(a), this.#sign * this.#priceOf(b)];
    return first > second || (first === second && a.rank < b.rank);
  }
}
