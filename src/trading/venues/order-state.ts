/**
 * State of one order, as far as this process knows it. A request whose response was lost may or
 * may not have created the order, and may still arrive, so the order is queried before each attempt
 * and is sent again only once no earlier request can arrive any longer.
 */
import type { VenueOrderId } from '../venue.ts';

export interface OrderState {
  readonly order: VenueOrderId;
  /** Time at which every earlier request has arrived or expired. */
  readonly settledAt: number;
  /** Whether the exchange has the order as open, or may have it. */
  readonly isWorking: boolean;
  /** Canceled, or reported as missing: the order is not sent. */
  readonly isWithdrawn: boolean;
  /** The placement in progress. */
  readonly placement: Placement | undefined;
}

interface Placement {
  readonly sends: number;
  readonly failure: SendFailure | undefined;
}

/** Outcome of a request that did not return the state of the order. */
export type SendFailure =
  /** Rejected for this reason; the order may exist all the same if the reason is not certain. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly isCertain: boolean }
  /** Rejected by a rate limit. */
  | { readonly kind: 'limited'; readonly error: unknown }
  /** The order may or may not have reached the exchange. */
  | { readonly kind: 'in_doubt'; readonly error: unknown };

export type OrderEvent =
  | { readonly kind: 'placement_begun' | 'placement_ended' }
  | { readonly kind: 'sending' | 'not_sent' }
  | { readonly kind: 'send_failed'; readonly failure: SendFailure }
  | { readonly kind: 'reported'; readonly isOpen: boolean }
  /** Found in a list of open orders. */
  | { readonly kind: 'listed' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'withdrawn' | 'cancel_confirmed' };

/** @param settledAt time at which requests of earlier processes have arrived or expired. */
export function initialState(order: VenueOrderId, settledAt: number): OrderState {
  return { order, settledAt, isWorking: false, isWithdrawn: false, placement: undefined };
}

/** @param settledAt time at which a request that is sent now has arrived or expired. */
export function evolve(state: OrderState, event: OrderEvent, settledAt: number): OrderState {
  const { placement } = state;
  switch (event.kind) {
    case 'placement_begun':
      return { ...state, placement: { sends: 0, failure: undefined } };
    case 'placement_ended':
      return { ...state, placement: undefined };
    case 'sending':
      return {
        ...state,
        isWorking: true,
        placement: { sends: placement!.sends + 1, failure: undefined },
      };
    case 'send_failed': {
      const { failure } = event;
      const isInDoubt =
        failure.kind === 'rejected' ? !failure.isCertain : failure.kind === 'in_doubt';
      const failed = { ...state, placement: { ...placement!, failure } };
      return isInDoubt ? { ...failed, settledAt } : failed;
    }
    case 'reported':
      // An order that was visible may be missing in the next response.
      return { ...state, isWorking: event.isOpen, settledAt };
    case 'listed':
      return { ...state, isWorking: true };
    case 'not_sent':
    case 'missing':
      return { ...state, isWorking: false };
    case 'withdrawn':
      return { ...state, isWithdrawn: true };
    case 'cancel_confirmed':
      break;
  }
  // A later placement finds the order; one in progress may not see it yet.
  return { ...state, isWithdrawn: placement !== undefined };
}

/** Whether the state is worth remembering at that time. */
export function isRelevant({ settledAt, ...state }: OrderState, now: number): boolean {
  return state.isWorking || state.isWithdrawn || state.placement !== undefined || settledAt > now;
}

const MOST_SENDS = 3;

export type Step =
  /** The order may still appear: query it again. */
  | { readonly kind: 'query'; readonly afterMs: number }
  | { readonly kind: 'send' }
  /** The exchange does not have the order, and it is not sent. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'rejected'; readonly reason: string }
  | { readonly kind: 'fail'; readonly error: unknown };

/**
 * Decides what follows a query that did not find the order.
 *
 * @param askedAt time at which the query began.
 */
export function decide({ settledAt, isWithdrawn, placement }: OrderState, askedAt: number): Step {
  if (askedAt < settledAt) return { kind: 'query', afterMs: settledAt - askedAt };
  if (placement === undefined) return { kind: 'missing' };
  const { sends, failure } = placement;
  if (failure?.kind === 'rejected') return { kind: 'rejected', reason: failure.reason };
  if (isWithdrawn) return { kind: 'missing' };
  return failure !== undefined && sends >= MOST_SENDS
    ? { kind: 'fail', error: failure.error }
    : { kind: 'send' };
}
