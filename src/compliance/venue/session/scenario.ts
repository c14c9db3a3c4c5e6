import type { Fault } from './faults.ts';
import type { FeedSetup } from './feed.ts';
import type { AccountSetup } from './holdings.ts';
import type { InstrumentSetup } from './listing.ts';
import type { FeedMessage, ReferenceTerms, Unnumbered } from './messages.ts';
import type { OrderTerms } from './order.ts';
import type { SessionSetup, Throttle } from './order-session.ts';
import type { Phase } from './phases.ts';

export type Gateway = 'primary' | 'secondary';

/** All that a simulated venue is made of: the same scenario and the same inputs say the same. */
export interface Scenario {
  /** Ends of auctions, and faults that come by chance. */
  readonly seed: number;
  /** ms since the epoch. */
  readonly start: number;
  readonly instruments: readonly InstrumentSetup[];
  readonly accounts: readonly AccountSetup[];
  readonly sessions: readonly SessionSetup[];
  readonly feed: FeedSetup;
  readonly faults: readonly Fault[];
  /** What happens without anybody's asking, in this order where the times are the same. */
  readonly deeds: readonly { readonly at: number; readonly deed: Deed }[];
}

/** What other participants do, the venue's operator, and fate. */
export type Deed =
  | ({
      readonly do: 'place';
      /** Account. */
      readonly as: string;
      readonly client_order_id: string;
      readonly instrument: string;
    } & OrderTerms)
  | {
      readonly do: 'amend';
      readonly as: string;
      readonly client_order_id: string;
      readonly orig_client_order_id: string;
      readonly quantity?: number;
      readonly price?: number;
      readonly stop_price?: number;
    }
  | {
      readonly do: 'cancel';
      readonly as: string;
      readonly client_order_id: string;
      readonly orig_client_order_id: string;
    }
  /** Of all instruments where none is named. */
  | { readonly do: 'phase'; readonly phase: Phase; readonly instrument?: string }
  /** The venue's operator cancels the order. */
  | { readonly do: 'end_order'; readonly as: string; readonly client_order_id: string }
  /** Mass cancels do not reach the order, or do again. */
  | {
      readonly do: 'pin';
      readonly as: string;
      readonly client_order_id: string;
      readonly is_pinned: boolean;
    }
  | { readonly do: 'bust'; readonly trade_id: number }
  | {
      readonly do: 'correct';
      readonly trade_id: number;
      readonly price: number;
      readonly quantity: number;
    }
  | {
      readonly do: 'set_terms';
      readonly instrument: string;
      readonly terms: Partial<
        Pick<ReferenceTerms, 'tick' | 'lot' | 'max_quantity' | 'band' | 'corridor'>
      >;
    }
  | { readonly do: 'delete'; readonly instrument: string }
  | { readonly do: 'log_out'; readonly session: string; readonly reason: string }
  /** The connection breaks without a farewell. */
  | { readonly do: 'cut'; readonly session: string }
  /** A gateway that is down has no connections and takes none. */
  | { readonly do: 'gateway'; readonly gateway: Gateway; readonly is_up: boolean }
  | {
      readonly do: 'throttle';
      readonly session: string;
      readonly throttle: Throttle | undefined;
    }
  | { readonly do: 'fault'; readonly fault: Fault }
  | { readonly do: 'clear_faults' }
  /** Market data that the venue makes up; it gets the next number. */
  | { readonly do: 'make_up'; readonly message: Unnumbered<FeedMessage> };
