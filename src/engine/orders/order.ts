import type { Instrument } from '../instrument.ts';

export const ORDER_TYPES = ['market', 'limit', 'stop', 'stop_limit', 'trailing_stop'] as const;
/** How the price of an order is limited, and what triggers it. */
export type OrderType = (typeof ORDER_TYPES)[number];

/**
 * `gtc` works until canceled; `day` ends with the trading day of the first bar it could trade in: a
 * UTC day or, with `universe.calendar`, a session;
 * `ioc` fills what it can at the open of that bar and cancels the rest; `fok` fills there whole or
 * not at all.
 */
export const TIMES_IN_FORCE = ['gtc', 'day', 'ioc', 'fok'] as const;
/** How long an order works: `gtc` until canceled, `day` to the end of the trading day, `ioc` and `fok` for the open of the next bar. */
export type TimeInForce = (typeof TIMES_IN_FORCE)[number];

/** An exit price: absolute, or a share of the entry's fill price (0.02 is 2 % away from it). */
export type ExitPrice = number | { readonly percent: number };

/** An order to place. Prices are in the currency of the instrument. */
export interface OrderRequest {
  readonly instrument: Instrument;
  readonly side: 'buy' | 'sell';
  /** Units, above 0. Rounded down if `engine.units` is `whole`. */
  readonly quantity: number;
  /** `market` when absent. */
  readonly type?: OrderType;
  /** For `limit` and `stop_limit`. */
  readonly limit?: number;
  /** For `stop` and `stop_limit`. */
  readonly stop?: number;
  /** For `trailing_stop`: distance from the best price since it began to work. */
  readonly trail?: ExitPrice;
  /** `gtc` when absent. */
  readonly timeInForce?: TimeInForce;
  /** Rejects a limit order that would fill at the open of its first bar, as a taker. */
  readonly postOnly?: boolean;
  /** Limits every fill to the units that close the position. */
  readonly reduceOnly?: boolean;
  /** Bracket: exits placed as a one-cancels-other pair when the entry fills. */
  readonly takeProfit?: ExitPrice;
  readonly stopLoss?: ExitPrice;
  /** Orders with the same number (above 0) cancel each other: the first to fill wins. */
  readonly ocoGroup?: number;
}

/** State of an order; only `working` can change. */
export type OrderStatus = 'working' | 'filled' | 'canceled' | 'expired' | 'rejected' | 'denied';

/** Names of the risk limits, which are also the reasons of the orders they deny. */
const RISK_LIMIT_NAMES = [
  'max_order_value',
  'max_order_qty',
  'price_collar_bps',
  'max_messages_per_second',
  'max_position_pct',
  'max_daily_loss_pct',
  'max_drawdown_pct',
  'max_instruments',
] as const;

const OPTIONAL_LIMIT_REASONS = [
  'price_collar_period',
  'messages_kept_for_cancels',
  'repeated_execution',
  'instrument_not_permitted',
] as const;

const THRESHOLD_REASONS = [
  'threshold_order_value',
  'threshold_order_qty',
  'threshold_gross_exposure',
  'threshold_daily_loss',
  'threshold_messages',
] as const;

/** Reasons for which a limit of the bot or a threshold of the firm denies or cancels an order. */
export const LIMIT_REASONS = [
  ...RISK_LIMIT_NAMES,
  ...OPTIONAL_LIMIT_REASONS,
  ...THRESHOLD_REASONS,
] as const;

/**
 * Why an order was not accepted, or ended without a complete fill. Stable codes; new ones come last,
 * since journals hold their places.
 */
export const ORDER_REASONS = [
  ...RISK_LIMIT_NAMES,
  'margin_call',
  'insufficient_funds',
  'short_not_allowed',
  'quantity_rounds_to_zero',
  'post_only_would_cross',
  'nothing_to_reduce',
  'not_filled_at_once',
  'canceled_by_strategy',
  'halted',
  'other_side_of_oco_filled',
  'position_closed',
  'day_ended',
  // An order is not sent to a venue, or it ended there.
  'not_supported_by_venue',
  'below_minimum',
  'license_invalid',
  'control_unreachable',
  'reconcile_mismatch',
  'stopping',
  'refused_by_venue',
  'canceled_by_venue',
  'expired_at_venue',
  'would_trigger',
  'not_fillable',
  'invalid_order',
  'market_closed',
  'unknown_symbol',
  'not_permitted',
  'not_at_venue',
  ...OPTIONAL_LIMIT_REASONS,
  'stale_data',
  'superseded',
  ...THRESHOLD_REASONS,
  // The market phase of the instrument at its venue.
  'market_halted',
  'not_taken_in_auction',
  'run_ended',
] as const;
/** Code of the reason for which an order was denied, rejected, canceled or expired. */
export type OrderReason = (typeof ORDER_REASONS)[number];

/** Reasons for which a session denies all new orders. */
export type DenyReason = Extract<
  OrderReason,
  | 'license_invalid'
  | 'control_unreachable'
  | 'reconcile_mismatch'
  | 'stale_data'
  // Another copy of the server's database was adopted, and the runner of that copy trades.
  | 'superseded'
  | 'stopping'
>;

/** One order through its life, as its strategy sees it. */
export interface Order {
  /** 1-based, in order of submission. */
  readonly id: number;
  readonly instrument: Instrument;
  readonly side: 'buy' | 'sell';
  readonly type: OrderType;
  readonly timeInForce: TimeInForce;
  /** Units; NaN for a target order until its first fill. */
  readonly quantity: number;
  /** Share of equity that a target order aims at; NaN for other orders. */
  readonly weight: number;
  readonly limit: number;
  readonly stop: number;
  readonly trail: ExitPrice | undefined;
  readonly postOnly: boolean;
  readonly reduceOnly: boolean;
  readonly takeProfit: ExitPrice | undefined;
  readonly stopLoss: ExitPrice | undefined;
  /** 0 when in no group. */
  readonly ocoGroup: number;
  /** Id of the entry whose fill placed this exit; 0 otherwise. */
  readonly parent: number;
  readonly status: OrderStatus;
  readonly reason: OrderReason | undefined;
  /** Units filled so far. */
  readonly filled: number;
  /** Whether its stop was reached. The remaining units work as a market order, or as a limit order for `stop_limit`. */
  readonly triggered: boolean;
  /** Trading day (days since the epoch) of the first bar it could trade in; −1 before that. */
  readonly session: number;
}
