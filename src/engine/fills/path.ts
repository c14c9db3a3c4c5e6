import type { Order } from '../orders/order.ts';
import { isStop, priceOnMove, type BarPrices } from './order-prices.ts';

/**
 * Path of the price within a bar that `ohlc_path` assumes, as the broker emulator of TradingView
 * does: the extreme nearer to the open comes first.
 */
export interface Path {
  /** Open, nearer extreme, other extreme, close; the low first if both are equally near. */
  readonly prices: readonly [number, number, number, number];
  /** Both extremes are equally near to the open, so the high might have come first. */
  readonly isUndecided: boolean;
}

/** The order that the price meets next. */
export interface Met<T> {
  readonly order: T;
  /** Price at which it fills, or at which the stop of a stop-limit order is triggered. */
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
 * Fill model of `ohlc_path`: the first order that the price meets on its way from `from` to the
 * `leg`-th price of the path. At the same price, stops come before limits, and older orders before
 * newer ones. This also holds for brackets and one-cancels-other groups, with one exception: if the
 * path is undecided and a limit is met whose group has a stop ahead on the path, the stop fills.
 *
 * @param orders those that may fill, oldest first
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
  const isAmbiguous = other !== undefined;
  if (other === undefined || isStop(first)) return { order: first, price: at, at, isAmbiguous };
  return { order: other, price: other.stop, at, isAmbiguous };
}

/**
 * An order of the same one-cancels-other group and of the opposite kind (limit or stop) that the
 * prices `ahead` reach.
 */
function otherSide<T extends Order>(
  orders: readonly T[],
  order: T,
  ahead: readonly number[],
): T | undefined {
  if (order.ocoGroup === 0) return undefined;
  const low = Math.min(...ahead);
  const high = Math.max(...ahead);
  return orders.find(
    (other) =>
      other.ocoGroup === order.ocoGroup &&
      isStop(other) !== isStop(order) &&
      !Number.isNaN(priceOnMove(other, low, high)),
  );
}
