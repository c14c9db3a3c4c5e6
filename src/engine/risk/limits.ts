import type { RiskLimits } from '../config.ts';
import type { OrderReason } from '../orders/order.ts';

/**
 * Measures of an order that limits compare. The gate keeps one and writes each order into it. −0 counts
 * like 0 and is stored as a double from the start.
 */
export class OrderIntent {
  /** Units. */
  quantity = -0;
  /** Account currency, at the last close or at the price of the fill. */
  value = -0;
  /** It can only bring the position nearer to flat, whatever works beside it; see `Exposure`. */
  reduces = false;
  /** Position, signed units, once the order and all working orders of its side are filled. */
  farthest = -0;
  /** Value of that position, account currency. */
  positionValue = -0;
  /** Distance of its limit or stop price from the reference, basis points; 0 without one. */
  collarBps = -0;
  /** Number of instruments that are held or being bought, including its own. */
  instruments = 0;
  equity = -0;
  /** Highest equity at a close so far. */
  peakEquity = -0;
  /** Equity at the last close of the previous trading day. */
  dayStartEquity = -0;
}

/**
 * The first limit that the order breaks. An order that only reduces a position is checked against the
 * limits of its own price and size only: leaving must stay possible.
 */
export function limitDenial(
  limits: RiskLimits,
  intent: Readonly<OrderIntent>,
): OrderReason | undefined {
  const { equity, dayStartEquity, peakEquity } = intent;
  if (exceeds(intent.collarBps, limits.price_collar_bps)) return 'price_collar_bps';
  if (exceeds(intent.quantity, limits.max_order_qty)) return 'max_order_qty';
  if (exceeds(intent.value, limits.max_order_value)) return 'max_order_value';
  if (intent.reduces) return undefined;
  if (exceeds(intent.positionValue, limits.max_position_pct * equity)) return 'max_position_pct';
  if (intent.instruments > limits.max_instruments) return 'max_instruments';
  if (exceeds(dayStartEquity - equity, limits.max_daily_loss_pct * dayStartEquity)) {
    return 'max_daily_loss_pct';
  }
  if (exceeds(peakEquity - equity, limits.max_drawdown_pct * peakEquity)) {
    return 'max_drawdown_pct';
  }
  return undefined;
}

/** The limits without those that a permit lifts. */
export function liftLimits(limits: RiskLimits, lifted: readonly OrderReason[]): RiskLimits {
  if (lifted.length === 0) return limits;
  const names = Object.keys(limits) as (keyof RiskLimits)[];
  return Object.fromEntries(
    names.map((name) => [name, lifted.includes(name) ? Infinity : limits[name]]),
  ) as unknown as RiskLimits;
}

/** An order cut to fit a limit exactly may exceed it by a rounding error. */
export function exceeds(value: number, limit: number): boolean {
  return value > limit * (1 + 1e-9);
}
