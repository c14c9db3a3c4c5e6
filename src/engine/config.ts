import { REQUIRED_LIMIT_NAMES, type RequiredLimit } from '../base/risk-limits.ts';
import type { BarKind } from './series/coarse-bars.ts';

/**
 * How orders are filled against bars; each is a pure function of the orders and one bar (`fills/`).
 * - `next_open`: market orders at the next bar's open; limits and stops within the bar, stops first.
 * - `ohlc_path`: walks open → nearer extreme → other extreme → close, exits of a bracket included.
 * - `volume_share`: as `next_open`, at most `limit` of the bar's volume per bar and instrument.
 */
export type FillModel =
  | { readonly model: 'next_open' }
  | { readonly model: 'ohlc_path' }
  | { readonly model: 'volume_share'; readonly limit: number };

export type FeeModel =
  | { readonly model: 'none' }
  /** `rate` of the notional (0.001 is 0.1 %), at least `min` in account currency per fill. */
  | { readonly model: 'percent'; readonly rate: number; readonly min: number }
  /** `rate` in account currency per unit, at least `min` per fill. */
  | { readonly model: 'per_share'; readonly rate: number; readonly min: number };

export type SlippageModel =
  | { readonly model: 'none' }
  /** The price moves against the order by `bps` hundredths of a percent. */
  | { readonly model: 'basis_points'; readonly bps: number }
  /** The price moves by `impact × (quantity / bar volume)²`, as a fraction of the price. */
  | { readonly model: 'volume_share'; readonly impact: number };

export type Account =
  /** Long only; every purchase is paid in full. */
  | { readonly model: 'cash' }
  /**
   * Long and short. `initial` is the equity that opening needs, and `maintenance` the equity that
   * holding needs, each as a share of gross exposure. If equity is below `maintenance` at a close, all
   * positions are closed at the next open (a margin call). New orders are denied until equity suffices
   * at a close, or only positions without recent bars are left. Orders for the instrument of such a
   * position are denied until that position is closed.
   */
  | { readonly model: 'margin'; readonly initial: number; readonly maintenance: number };

/**
 * Limits checked before every order; `Infinity` means no limit. The price collar also applies to the
 * price that a market order gets, and to the price of a stop order relative to its stop price. It is
 * measured from `ReferencePrice`.
 */
export type RiskLimits = Readonly<Record<RequiredLimit, number>>;

export const NO_RISK_LIMITS = Object.fromEntries(
  REQUIRED_LIMIT_NAMES.map((name) => [name, Infinity]),
) as RiskLimits;

/** Further limits, checked before every order; absent ones do not apply. */
export interface OptionalLimits {
  /**
   * Maximum distance in basis points between the price of an order and the limit prices and fills of
   * the last `seconds`, per instrument and side. The price of an order without a limit is the last
   * close.
   */
  readonly price_collar_period?: { readonly seconds: number; readonly bps: number };
  /** Part of `max_messages_per_second` that only cancels may use. */
  readonly messages_kept_for_cancels?: number;
  /**
   * After `count` executed orders of one instrument and side within `seconds`, every new order is
   * denied until a person re-enables the bot.
   */
  readonly repeated_execution?: { readonly count: number; readonly seconds: number };
  /** Symbols; orders for others are denied. */
  readonly permitted?: readonly string[];
}

export interface EngineConfig extends BarKind {
  /** Account currency at the start. */
  readonly cash: number;
  readonly fill: FillModel;
  /** `whole` rounds every quantity down to whole units. */
  readonly units: 'fractional' | 'whole';
  readonly fees: FeeModel;
  readonly slippage: SlippageModel;
  readonly account: Account;
  readonly risk: RiskLimits;
  readonly optionalLimits?: OptionalLimits | undefined;
  /**
   * Whether each order of the strategy misses its first bar, as if it reached the market one bar late.
   * Exits of brackets are on time. Ignored at a venue.
   */
  readonly ordersAreLate?: boolean | undefined;
  readonly seed: number;
  /** Whether a backtest closes all positions at its last closes; by default, they stay open. */
  readonly closesAtEnd?: boolean | undefined;
}
