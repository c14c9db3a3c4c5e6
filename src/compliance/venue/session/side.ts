import type { Level, Order, Side } from './order.ts';

/**
 * The orders of one side by price, and by time within a price. Prices are a sorted array whose best
 * is at its end, because that is where most come and go: there nothing has to be moved, and elsewhere
 * only the few better ones. A price is found by halving.
 */
export class BookSide {
  /** Worst price first. */
  readonly levels: Level[] = [];
  /** Levels whose quantity changed since this was last emptied, the same price perhaps twice. */
  readonly changed: Level[] = [];
  readonly #side: Side;
  /** Times the price, the best is the highest on either side. */
  readonly #sign: 1 | -1;

  readonly #isShown: boolean;

  /** @param isShown whether changes are to be listed. */
  constructor(side: Side, isShown: boolean) {
    this.#side = side;
    this.#isShown = isShown;
    this.#sign = side === 'buy' ? 1 : -1;
  }

  get best(): Level | undefined {
    return this.levels[this.levels.length - 1];
  }

  /** Puts an order behind all others of the price. */
  append(order: Order, price: number): void {
    const at = this.#indexOf(price);
    let level = this.levels[at];
    if (level === undefined || level.price !== price) {
      level = newLevel(this.#side, price);
      insertAt(this.levels, at, level);
    }
    order.level = level;
    order.previous = level.tail;
    order.next = undefined;
    if (level.tail === undefined) level.head = order;
    else level.tail.next = order;
    level.tail = order;
    level.count += 1;
    this.grow(level, order.leaves);
  }

  /** Takes out an order that rests here, whatever it leaves. */
  remove(order: Order): void {
    const level = order.level!;
    const { previous, next } = order;
    if (previous === undefined) level.head = next;
    else previous.next = next;
    if (next === undefined) level.tail = previous;
    else next.previous = previous;
    order.level = undefined;
    order.previous = undefined;
    order.next = undefined;
    level.count -= 1;
    this.grow(level, -order.leaves);
    if (level.count === 0) removeAt(this.levels, this.#indexOf(level.price));
  }

  /** Counts what an order of the level leaves more, or with a minus less. */
  grow(level: Level, quantity: number): void {
    level.quantity += quantity;
    if (this.#isShown && !level.isChanged) {
      level.isChanged = true;
      this.changed.push(level);
    }
  }

  /** The changes are known to whoever reads them. */
  settle(): void {
    for (const level of this.changed) level.isChanged = false;
    this.changed.length = 0;
  }

  /** Every order, in the order in which they would trade. */
  *orders(): Generator<Order, void> {
    for (const level of this.levels.toReversed()) {
      for (let order = level.head; order !== undefined; order = order.next) yield order;
    }
  }

  /** Of the price, or where it would have to be inserted. */
  #indexOf(price: number): number {
    const { levels } = this;
    const rank = this.#sign * price;
    let low = 0;
    let high = levels.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#sign * levels[middle]!.price < rank) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function newLevel(side: Side, price: number): Level {
  return {
    side,
    price,
    head: undefined,
    tail: undefined,
    quantity: 0,
    count: 0,
    isChanged: false,
  };
}

// Not `splice`, which makes an array of what it takes out.

function insertAt(levels: Level[], at: number, level: Level): void {
  levels.push(level);
  for (let i = levels.length - 1; i > at; i -= 1) levels[i] = levels[i - 1]!;
  levels[at] = level;
}

function removeAt(levels: Level[], at: number): void {
  for (let i = at; i < levels.length - 1; i += 1) levels[i] = levels[i + 1]!;
  levels.pop();
}
