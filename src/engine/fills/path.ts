import type { Order } from '../orders.ts';
import { isStop, priceOnMove } from './order-prices.ts';
import type { BarPrices } from './order-prices.ts';

/** How `ohlc_path` takes the price to have moved within a bar. */
export interface Path {
  /** Open, the extreme nearer to it, the other one, close. Where both are equally near, the low first. */
  readonly prices: readonly [number, number, number, number];
  /** Both extremes are equally near, so that it might as well have been the high first. */
  readonly isUndecided: boolean;
}

/** The order that the price meets next. */
export interface Met<T> {
  readonly order: T;
  /** Where it fills, or where the stop of a stop-limit is reached. */
  readonly price: number;
  /** Where the price is on the path then. */
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

/** Of the order's one-cancels-other group, a limit for a stop or a stop for a limit that lies ahead. */
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
