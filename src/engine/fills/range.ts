import type { Order } from '../orders/order.ts';
import { isBeyondLimit, isStop, priceWithinBar, type BarPrices } from './order-prices.ts';

/** The next event within a bar. */
export interface NextInRange<T> {
  /** Undefined if the bar reaches no further order. */
  readonly order: T | undefined;
  /** Price at which it fills, or at which the stop of a stop-limit order is triggered. */
  readonly price: number;
  /** The range does not decide which of several orders came first, or whether an exit was reached. */
  readonly isAmbiguous: boolean;
}

/**
 * Fill model of `next_open` and `volume_share` within a bar of which only the range is known. Of the
 * orders that it reaches, stops come before limits, and older orders before newer ones: the
 * pessimistic choice for a bracket. The target of an entry that filled inside this bar fills only if
 * the close is beyond it, since the price may have been there before the entry.
 *
 * @param orders those that may fill, oldest first
 * @param entered exits whose entry filled inside this bar, with the price of that fill
 */
export function nextInRange<T extends Order>(
  orders: readonly T[],
  bar: BarPrices,
  entered: ReadonlyMap<T, number>,
): NextInRange<T> {
  let chosen: T | undefined;
  let chosenPrice = Number.NaN;
  let reached = 0;
  let isAmbiguous = false;
  for (const order of orders) {
    const price = priceWithinBar(order, entered.get(order) ?? bar.open, bar);
    if (Number.isNaN(price)) continue;
    if (entered.has(order)) {
      const isProven = !isStop(order) && isBeyondLimit(order, bar.close);
      if (!isProven) isAmbiguous = true;
      if (!isProven && !isStop(order)) continue;
    }
    reached += 1;
    if (chosen === undefined || (isStop(order) && !isStop(chosen))) {
      chosen = order;
      chosenPrice = price;
    }
  }
  return { order: chosen, price: chosenPrice, isAmbiguous: isAmbiguous || reached > 1 };
}
