import type { OrderReason } from '../orders/order.ts';
import { exceeds, type OrderIntent } from './limits.ts';

/** Account currency, units, or messages per second of bar time. */
export interface Threshold {
  readonly value: number;
}

/** Thresholds of one instrument. */
export interface InstrumentThresholds {
  readonly max_order_value?: Threshold | undefined;
  readonly max_order_qty?: Threshold | undefined;
  /** Value of its position with all working orders of the order's side filled. */
  readonly max_gross_exposure?: Threshold | undefined;
}

/**
 * Thresholds of the firm for a run, which can change during the run. They apply in addition to the
 * run's own limits, so that the tightest wins. An absent threshold does not apply.
 */
export interface Thresholds {
  readonly max_order_value?: Threshold | undefined;
  /** Value of all positions, long and short, with all working orders filled. */
  readonly max_gross_exposure?: Threshold | undefined;
  /** Loss since the last close of the previous trading day. */
  readonly max_daily_loss?: Threshold | undefined;
  readonly max_messages_per_second?: Threshold | undefined;
  /** Keyed by symbol. */
  readonly instruments?: Readonly<Record<string, InstrumentThresholds>> | undefined;
}

/**
 * The first threshold that the order breaks and that no permit lifts; orders that only reduce a
 * position are exempt from the same ones as in `limitDenial`.
 *
 * @param grossBeside value of the positions in all other instruments at their worst.
 */
export function thresholdDenial(
  { instruments, max_order_value, max_gross_exposure, max_daily_loss }: Thresholds,
  symbol: string,
  intent: Readonly<OrderIntent>,
  grossBeside: () => number,
  lifted: readonly OrderReason[],
): OrderReason | undefined {
  const own = instruments?.[symbol];
  const { quantity, value, reduces, positionValue, equity, dayStartEquity } = intent;
  if (isOver(value, max_order_value) || isOver(value, own?.max_order_value)) {
    if (!lifted.includes('threshold_order_value')) return 'threshold_order_value';
  }
  if (isOver(quantity, own?.max_order_qty) && !lifted.includes('threshold_order_qty')) {
    return 'threshold_order_qty';
  }
  if (reduces) return undefined;
  const isExposed =
    isOver(positionValue, own?.max_gross_exposure) ||
    (max_gross_exposure !== undefined && isOver(positionValue + grossBeside(), max_gross_exposure));
  if (isExposed && !lifted.includes('threshold_gross_exposure')) return 'threshold_gross_exposure';
  return isOver(dayStartEquity - equity, max_daily_loss) ? 'threshold_daily_loss' : undefined;
}

function isOver(measured: number, threshold: Threshold | undefined): boolean {
  return threshold !== undefined && exceeds(measured, threshold.value);
}
