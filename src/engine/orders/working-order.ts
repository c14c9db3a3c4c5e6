import type { Permit } from '../risk/permits.ts';
import type { Order, OrderReason } from './order.ts';

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
  /** The permit with which it passed its limits. */
  permit: Permit | undefined;
  /**
   * The farthest position in its direction, signed units, for which it was checked against the limits;
   * undefined before any check. A number from the start would cost each order an allocation.
   */
  farthest: number | undefined;
  /** It closes a position for a margin call; the strategy cannot cancel it. */
  isLiquidation: boolean;
  /** Whether a venue has it. */
  isSent: boolean;
  /** Reason for which the venue was asked to cancel it. It works until the venue confirms. */
  pendingCancel: OrderReason | undefined;
  /** View for strategies, created on first use. */
  view: Order | undefined;
}

export function isTarget({ weight }: Readonly<Order>): boolean {
  return !Number.isNaN(weight);
}

/** Whether the quantity of a target is still open. */
export function isUnsizedTarget({ weight, quantity }: Readonly<Order>): boolean {
  return !Number.isNaN(weight) && Number.isNaN(quantity);
}

/** 1 for purchases, −1 for sales. */
export function signOf({ side }: Pick<Order, 'side'>): 1 | -1 {
  return side === 'buy' ? 1 : -1;
}
