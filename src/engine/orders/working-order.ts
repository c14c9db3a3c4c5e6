import type { Order } from './order.ts';
import type { Permit } from '../risk/permits.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Internal state of an order. Strategies receive only its view. */
export interface WorkingOrder extends Mutable<Order> {
  /** Last step in which a fill was attempted, so that a partial fill waits for the next bar. */
  triedAt: number;
  /** Price that a market order's collar is measured from; NaN for others. */
  reference: number;
  /**
   * Its size or the price of its instrument is known only at its first fill, so limits are checked
   * then.
   */
  readonly isCheckedAtFill: boolean;
  /** The bracket exits that guard what this entry last filled. */
  exits: readonly WorkingOrder[];
  /** Lets it pass a limit. */
  permit: Permit | undefined;
  /**
   * The farthest position in its direction, signed units, for which it was checked against the limits;
   * undefined before any check. A number from the start would cost each order an allocation.
   */
  farthest: number | undefined;
  /** It closes a position for a margin call; the strategy cannot cancel it. */
  isLiquidation: boolean;
  /** View for strategies, created on first use. */
  view: Order | undefined;
}

/** A target whose quantity is still open. */
export function isUnsizedTarget({ weight, quantity }: Readonly<WorkingOrder>): boolean {
  return !Number.isNaN(weight) && Number.isNaN(quantity);
}
