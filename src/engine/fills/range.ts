import type { Order } from '../orders/order.ts';
import { beyondLimit, isStop, priceWithinBar } from './order-prices.ts';
import type { BarPrices } from './order-prices.ts';

/** The next event within a bar. */
export interface NextInRange<T> {
  /** Undefined: no further order is reached. */
  readonly order: T | undefined;
  /** Price at which it fills, or at which the stop of a stop-limit is triggered. */
  readonly price: number;
  /** The range does not say which of several orders came first, or whether an exit was reached. */
  readonly isAmbiguous: boolean;
}

/**
 * The fill model of `next_open` and `volume_share` within a bar, of which only the range is known: of
 * the orders that it reaches, stops come before limits, and then the oldest. An exit whose entry filled
 * inside this bar takes its profit in it only if the close proves that its price came after the entry.
 *
 * @param orders those that may fill, oldest first.
 * @param entered of exits whose entry filled inside this bar, the price at which it did.
 */
export function nextInRange<T extends Order>(
  orders: readonly T[],
  { open, high, low, close }: BarPrices,
  entered: ReadonlyMap<T, number>,
): NextInRange<T> {
  let chosen: T | undefined;
  let chosenPrice = Number.NaN;
  let reached = 0;
  let isAmbiguous = false;
  for (const order of orders) {
    const price = priceWithinBar(order, entered.get(order) ?? open, high, low);
    if (Number.isNaN(price)) continue;
    if (entered.has(order)) {
      const isProven = !isStop(order) && beyondLimit(order, close);
      if (!isProven) isAmbiguous = true;
      // The price may have been reached before the entry was filled.
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
