import type { Fault } from './faults.ts';
import type { Phase, Terms } from './listing.ts';
import type { Side, TimeInForce } from './book-order.ts';
import type { ThrottleTerms } from './throttle.ts';

/** A command to the simulated exchange: by another participant or the operator, or a fault. */
export type ExchangeCommand =
  /** An order of another participant; price and quantity are in units of the instrument. */
  | {
      readonly do: 'place';
      /** Name of the account. */
      readonly as: string;
      readonly client_order_id: string;
      readonly symbol: string;
      readonly side: Side;
      readonly time_in_force: TimeInForce;
      readonly quantity: number;
      readonly price: number;
    }
  | { readonly do: 'cancel'; readonly as: string; readonly client_order_id: string }
  /** The operator ends an order. */
  | {
      readonly do: 'end_order';
      readonly as: string;
      readonly client_order_id: string;
      readonly status: 'canceled' | 'expired';
    }
  /** Changes a trade; a quantity of 0 undoes it. */
  | {
      readonly do: 'revise_trade';
      readonly trade_id: number;
      readonly price: number;
      readonly quantity: number;
    }
  /** Changes the phase of one instrument, or of all. */
  | { readonly do: 'phase'; readonly phase: Phase; readonly symbol?: string }
  | { readonly do: 'set_terms'; readonly symbol: string; readonly terms: Partial<Terms> }
  | { readonly do: 'delist'; readonly symbol: string }
  /** The owner of an account takes an amount out of it. */
  | {
      readonly do: 'withdraw';
      readonly as: string;
      readonly asset: string;
      readonly amount: number;
    }
  /** Disconnects all streams. */
  | { readonly do: 'cut' }
  /** While the network is down, requests and streams fail: all of them, or only the private ones. */
  | { readonly do: 'network'; readonly is_up: boolean; readonly of?: 'all' | 'accounts' }
  | { readonly do: 'throttle'; readonly throttle: ThrottleTerms | undefined }
  | { readonly do: 'fault'; readonly fault: Fault }
  | { readonly do: 'clear_faults' };
