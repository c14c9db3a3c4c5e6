import type { Order } from './orders.ts';
import type { Permit } from './risk/supervision.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** An order as the engine keeps it. Strategies never hold one. */
export interface WorkingOrder extends Mutable<Order> {
  /** Last step in which it was tried at a price, so that a partial fill waits for the next bar. */
  triedAt: number;
  /** Price that a market order's collar is measured from; NaN for others. */
  reference: number;
  /** Its size, or the price of its instrument, is known only at its first fill: limits are checked there. */
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
  /** It closes a position for a margin call, and is not the strategy's to cancel. */
  isLiquidation: boolean;
  /** View for strategies, created on first use. */
  view: Order | undefined;
}

/** A target whose quantity is still open. */
export function isUnsizedTarget({ weight, quantity }: Readonly<WorkingOrder>): boolean {
  return !Number.isNaN(weight) && Number.isNaN(quantity);
}
