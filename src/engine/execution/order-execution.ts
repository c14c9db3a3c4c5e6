import type { OrderReason } from '../orders/order.ts';
import type { WorkingOrder } from '../orders/working-order.ts';

/** How orders are executed: bars fill them, or a venue does. */
export interface OrderExecution {
  /** Fills orders of earlier steps from the bars of the current step, before it is marked. */
  fillFromBars(): void;
  /** Sends orders that have waited for a price, after the current step is marked. */
  sendWaiting(): void;
  /** The reason for which an order like this is not accepted now, whatever its size. */
  denial(order: WorkingOrder): OrderReason | undefined;
  /** Accepts a new order. Returns the reason if it denies the order. */
  place(order: WorkingOrder): OrderReason | undefined;
  /** Cancels an order, or asks the venue that has it to cancel it. */
  withdraw(order: WorkingOrder, reason: OrderReason): void;
}
