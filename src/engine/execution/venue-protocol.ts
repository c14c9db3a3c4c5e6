import type { OrderType, TimeInForce } from '../orders/order.ts';

/** An order as a venue is to work it. */
export interface VenueOrder {
  /** Number within the session, from 1. */
  readonly order: number;
  /** See `clientOrderId`. */
  readonly client_order_id: string;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly type: Exclude<OrderType, 'trailing_stop'>;
  readonly time_in_force: Exclude<TimeInForce, 'day'>;
  /** Units, a multiple of the instrument's step. */
  readonly quantity: number;
  /** Of `limit` and `stop_limit`; multiples of the tick. */
  readonly limit?: number;
  /** Of `stop` and `stop_limit`. */
  readonly stop?: number;
  readonly post_only?: true;
  readonly reduce_only?: true;
}

/**
 * What a venue says of an order. Cumulative: telling it twice changes nothing, and one that was lost
 * is made good by the next. Sums only grow, but by a trade that is undone or corrected.
 */
export interface VenueReport {
  readonly order: number;
  readonly client_order_id: string;
  readonly status: 'open' | 'filled' | 'canceled' | 'rejected' | 'expired';
  /** Units filled so far, before `fee_units`. */
  readonly filled: number;
  /** What these fills cost or brought in so far, without fees, account currency, above 0. */
  readonly cost: number;
  /** Fees so far, account currency. */
  readonly fee: number;
  /** Fees so far that were taken in units of the instrument itself. */
  readonly fee_units: number;
  /** How many corrections of its trades these sums know of; none when absent. */
  readonly corrections?: number;
  /** Milliseconds since the epoch, by the venue's clock. */
  readonly time: number;
  /** Why it ended without a complete fill: an `OrderReason` where one says it, else for people. */
  readonly reason?: string;
}

/** What an instrument is doing at its venue; orders for it are taken, gather for one price, or are not taken. */
export type MarketPhase = 'open' | 'auction' | 'halted' | 'closed';

/** What a venue takes at the moment. */
export interface VenueRules {
  readonly types: readonly VenueOrder['type'][];
  /** By symbol; steps, least quantities, least values and ticks that there are none of are 0. */
  readonly instruments: Readonly<Record<string, InstrumentRules>>;
}

export interface InstrumentRules {
  /** Units of which a quantity is a multiple. */
  readonly step: number;
  readonly min_quantity: number;
  /** Quantity × price, account currency. */
  readonly min_value: number;
  /** What prices are multiples of. */
  readonly tick: number;
  /** Absent: it is open. */
  readonly phase?: MarketPhase;
}
