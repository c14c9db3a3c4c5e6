import type { OrderType, TimeInForce } from '../orders/order.ts';

/** An order to a venue. */
export interface VenueOrder {
  /** Id within the session, from 1. */
  readonly order: number;
  /** See `clientOrderId`. */
  readonly client_order_id: string;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly type: Exclude<OrderType, 'trailing_stop'>;
  readonly time_in_force: Exclude<TimeInForce, 'day'>;
  /** Units, a multiple of the instrument's step. */
  readonly quantity: number;
  /** Only for `limit` and `stop_limit`; a multiple of the tick, like `stop`. */
  readonly limit?: number;
  /** Only for `stop` and `stop_limit`. */
  readonly stop?: number;
  readonly post_only?: true;
  readonly reduce_only?: true;
}

/**
 * State of an order at a venue. Its sums are cumulative: a repeated report changes nothing, and the
 * next report makes up for a lost one. Sums only grow, unless trades are undone or corrected.
 */
export interface VenueReport {
  readonly order: number;
  readonly client_order_id: string;
  readonly status: 'open' | 'filled' | 'canceled' | 'rejected' | 'expired';
  /** Units filled so far, before `fee_units`. */
  readonly filled: number;
  /** Cost or proceeds of these fills without fees, account currency, not below 0. */
  readonly cost: number;
  /** Fees so far, account currency. */
  readonly fee: number;
  /** Fees so far in units of the instrument. */
  readonly fee_units: number;
  /** Number of corrections of its trades that the sums contain; 0 by default. */
  readonly corrections?: number;
  /** Whether the sums contain one more correction than before, from a venue that does not count them. */
  readonly is_correction?: true;
  /** Milliseconds since the epoch, by the venue's clock. */
  readonly time: number;
  /** Reason for its end without a complete fill: an `OrderReason`, or text for people. */
  readonly reason?: string;
}

/** In `auction`, orders gather for one price. In `halted` and `closed`, no orders are accepted. */
export type MarketPhase = 'open' | 'auction' | 'halted' | 'closed';

/** Orders that a venue accepts now. */
export interface VenueRules {
  readonly types: readonly VenueOrder['type'][];
  /** Keyed by symbol. 0 means no step, minimum or tick. */
  readonly instruments: Readonly<Record<string, InstrumentRules>>;
}

export interface InstrumentRules {
  /** Quantities are multiples of it, units. */
  readonly step: number;
  readonly min_quantity: number;
  /** Quantity × price, account currency. */
  readonly min_value: number;
  /** Prices are multiples of it. */
  readonly tick: number;
  /** `open` by default. */
  readonly phase?: MarketPhase;
}
