import type { OrderReason } from './order.ts';
import type { WorkingOrder } from './working-order.ts';

/** How an order ends without a complete fill. */
export type UnfilledStatus = 'canceled' | 'expired' | 'rejected' | 'denied';

export type OrderCommand =
  | { readonly kind: 'trigger' }
  /** Ends the order, or asks the venue to cancel it. */
  | { readonly kind: 'cancel'; readonly reason: OrderReason; readonly isAtVenue: boolean }
  | { readonly kind: 'end'; readonly status: UnfilledStatus; readonly reason: OrderReason }
  /** Ends the order if it is filled, or if the venue reports that it is. */
  | { readonly kind: 'complete'; readonly isReported: boolean };

export type OrderChange =
  | { readonly kind: 'triggered' }
  | { readonly kind: 'pending_cancel'; readonly reason: OrderReason }
  | { readonly kind: 'completed' }
  | { readonly kind: 'ended'; readonly status: UnfilledStatus; readonly reason: OrderReason };

const TRIGGERED: OrderChange = { kind: 'triggered' };
const COMPLETED: OrderChange = { kind: 'completed' };

/** The change that a command causes; undefined for none. An order that has ended does not change. */
export function decide(
  order: Readonly<WorkingOrder>,
  command: OrderCommand,
): OrderChange | undefined {
  if (order.status !== 'working') return undefined;
  switch (command.kind) {
    case 'trigger':
      return order.triggered ? undefined : TRIGGERED;
    case 'cancel': {
      const { reason, isAtVenue } = command;
      if (!isAtVenue) return { kind: 'ended', status: 'canceled', reason };
      return order.pendingCancel === undefined ? { kind: 'pending_cancel', reason } : undefined;
    }
    case 'end':
      return { kind: 'ended', status: command.status, reason: command.reason };
    case 'complete': {
      const isFilled = order.filled >= order.quantity * (1 - 1e-12);
      return isFilled || command.isReported ? COMPLETED : undefined;
    }
    default:
      return command satisfies never;
  }
}

/** Applies a change to the order. */
export function evolve(order: WorkingOrder, change: OrderChange): void {
  switch (change.kind) {
    case 'triggered':
      order.triggered = true;
      break;
    case 'pending_cancel':
      order.pendingCancel = change.reason;
      break;
    case 'completed':
      order.status = 'filled';
      break;
    case 'ended':
      order.status = change.status;
      order.reason = change.reason;
      break;
    default:
      change satisfies never;
  }
}
