import type { Order } from '../orders/order.ts';
import { isStop, priceOnMove } from './order-prices.ts';
import type { BarPrices } from './order-prices.ts';

/** Path of the price within a bar that `ohlc_path` assumes. */
export interface Path {
  /**
   * Open, nearer extreme, other extreme, close. If both extremes are equally near, the low comes
   * first.
   */
  readonly prices: readonly [number, number, number, number];
  /** Both extremes are equally near to the open, so that the high might have come first. */
  readonly isUndecided: boolean;
}

/** The order that the price meets next. */
export interface Met<T> {
  readonly order: T;
  /** Price at which it fills, or at which the stop of a stop-limit is triggered. */
  readonly price: number;
  /** Position of the price on the path at that moment. */
  readonly at: number;
  /** The path does not decide between it and the other side of its one-cancels-other group. */
  readonly isAmbiguous: boolean;
}

export function pathOf({ open, high, low, close }: BarPrices): Path {
  const up = high - open;
  const down = open - low;
  return {
    prices: up < down ? [open, high, low, close] : [open, low, high, close],
    isUndecided: Math.abs(up - down) <= 1e-9 * (high - low),
  };
}

/**
 * The fill model of `ohlc_path`: the first order that the price meets on its way from `from` to the
 * `leg`-th price of the path. Of orders at the same price stops come first, and then the oldest.
 * Orders of a one-cancels-other group are no exception. Only where the path itself is undecided, and
 * the stop of the group lies ahead, too, the stop is taken.
 *
 * @param orders those that may fill, oldest first.
 */
export function nextOnPath<T extends Order>(
  orders: readonly T[],
  { prices, isUndecided }: Path,
  leg: number,
  from: number,
): Met<T> | undefined {
  let first: T | undefined;
  let at = Number.NaN;
  for (const order of orders) {
    const price = priceOnMove(order, from, prices[leg]!);
    if (Number.isNaN(price)) continue;
    const distance = Math.abs(price - from);
    const best = first === undefined ? Infinity : Math.abs(at - from);
    const isStopAtSamePrice = distance === best && isStop(order) && !isStop(first!);
    if (distance < best || isStopAtSamePrice) {
      first = order;
      at = price;
    }
  }
  if (first === undefined) return undefined;
  const other = isUndecided ? otherSide(orders, first, [at, ...prices.slice(leg)]) : undefined;
  if (other === undefined || isStop(first)) {
    return { order: first, price: at, at, isAmbiguous: other !== undefined };
  }
  return { order: other, price: other.stop, at, isAmbiguous: true };
}

/**
 * An order of the opposite kind (limit or stop) in the same one-cancels-other group that lies ahead
 * on the path.
 */
function otherSide<T extends Order>(
  orders: readonly T[],
  order: T,
  ahead: readonly number[],
): T | undefined {
  if (order.ocoGroup === 0) return undefined;
  const low = Math.min(...ahead);
  const high = Math.max(...ahead);
  const isAhead = ({ side, stop, limit }: T, isForStop: boolean): boolean => {
    if (isForStop) return side === 'buy' ? stop <= high : stop >= low;
    return side === 'buy' ? low < limit : high > limit;
  };
  return orders.find(
    (other) =>
      other !== order &&
      other.ocoGroup === order.ocoGroup &&
      isStop(other) !== isStop(order) &&
      isAhead(other, isStop(other)),
  );
}
