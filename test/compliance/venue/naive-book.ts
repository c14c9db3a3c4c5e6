/**
 * A book as slow and as plain as can be: every question is answered by sorting all orders. What is
 * written for speed is compared with it.
 */
import type { Order, SelfTrade } from '../../../src/compliance/venue/book-order.ts';

interface NaiveOrder {
  readonly id: number;
  readonly account: number;
  readonly side: 'buy' | 'sell';
  readonly timeInForce: string;
  readonly selfTrade: SelfTrade;
  price: number;
  stopPrice: number;
  isParked: boolean;
  quantity: number;
  leaves: number;
  /** When it got its place. */
  since: number;
}

export class NaiveBook {
  orders: NaiveOrder[] = [];
  log: string[] = [];
  last = Number.NaN;
  #clock = 0;

  submit(from: Order): void {
    const { id, account, side, timeInForce, selfTrade, price, stopPrice, isParked } = from;
    const { quantity, leaves } = from;
    const terms = { id, account, side, timeInForce, selfTrade, price, stopPrice, isParked };
    this.#enter({ ...terms, quantity, leaves, since: 0 });
  }

  cancel(id: number): void {
    this.orders = this.orders.filter((order) => order.id !== id);
  }

  /** Orders of one side, or its stop orders, in the order in which they would trade: id, price, leaves. */
  queue(side: 'buy' | 'sell', isParked: boolean): readonly (readonly [number, number, number])[] {
    // The highest buyer comes first, and of stops the lowest buyer.
    const sign = (side === 'buy') === isParked ? 1 : -1;
    const key = ({ price, stopPrice }: NaiveOrder): number => sign * (isParked ? stopPrice : price);
    return this.orders
      .filter((order) => order.side === side && order.isParked === isParked)
      .sort((a, b) => key(a) - key(b) || a.since - b.since)
      .map((order) => [order.id, isParked ? order.stopPrice : order.price, order.leaves]);
  }

  #enter(order: NaiveOrder): void {
    this.#clock += 1;
    order.since = this.#clock;
    if (order.isParked && !this.#isReached(order)) {
      this.orders.push(order);
      return;
    }
    if (order.isParked) this.#trigger(order);
    this.#execute(order);
    this.#release();
  }

  #release(): void {
    for (;;) {
      const reached = this.orders.filter((order) => order.isParked && this.#isReached(order));
      const buyers = reached.filter(({ side }) => side === 'buy');
      const sign = buyers.length > 0 ? 1 : -1;
      const [next] = (buyers.length > 0 ? buyers : reached).sort(
        (a, b) => sign * (a.stopPrice - b.stopPrice) || a.since - b.since,
      );
      if (next === undefined) return;
      this.cancel(next.id);
      this.#trigger(next);
      this.#execute(next);
    }
  }

  #execute(order: NaiveOrder): void {
    if (order.timeInForce === 'fok') {
      const kept = { orders: structuredClone(this.orders), log: [...this.log], last: this.last };
      const { leaves } = order;
      this.#match(order);
      const isFilled = order.leaves === 0 && !this.log.includes(`ended ${order.id} self_trade`);
      if (isFilled) return;
      Object.assign(this, kept);
      order.leaves = leaves;
      this.log.push(`ended ${order.id} not_filled_at_once`);
      return;
    }
    this.#match(order);
    if (order.leaves === 0) return;
    if (order.timeInForce === 'ioc' || !Number.isFinite(order.price)) {
      this.log.push(`ended ${order.id} not_filled_at_once`);
      return;
    }
    this.#clock += 1;
    order.since = this.#clock;
    this.orders.push(order);
  }

  #match(taker: NaiveOrder): void {
    while (taker.leaves > 0) {
      const [makerId] = this.queue(taker.side === 'buy' ? 'sell' : 'buy', false)[0] ?? [];
      const maker = this.orders.find(({ id }) => id === makerId);
      if (maker === undefined) return;
      const meets = taker.side === 'buy' ? maker.price <= taker.price : maker.price >= taker.price;
      if (!meets) return;
      const { selfTrade } = taker;
      if (maker.account === taker.account && selfTrade !== 'none') {
        if (selfTrade !== 'cancel_newest') {
          this.cancel(maker.id);
          this.log.push(`ended ${maker.id} self_trade`);
        }
        if (selfTrade !== 'cancel_oldest') {
          taker.leaves = 0;
          this.log.push(`ended ${taker.id} self_trade`);
        }
        continue;
      }
      const quantity = Math.min(maker.leaves, taker.leaves);
      maker.leaves -= quantity;
      taker.leaves -= quantity;
      this.last = maker.price;
      if (maker.leaves === 0) this.cancel(maker.id);
      this.log.push(`traded ${taker.id} ${maker.id} ${maker.price} ${quantity}`);
    }
  }

  #trigger(order: NaiveOrder): void {
    order.isParked = false;
    this.log.push(`triggered ${order.id}`);
  }

  #isReached({ side, stopPrice }: NaiveOrder): boolean {
    return side === 'buy' ? this.last >= stopPrice : this.last <= stopPrice;
  }
}
