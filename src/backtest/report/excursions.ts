import { firstAtLeast } from '../../base/sorted.ts';
import type { Trade } from '../../engine/round-trip.ts';
import type { Bars } from '../../market/bars.ts';

/** How far the price moved against a trade and in its favor, as shares of the entry price, at least zero. */
export interface Excursion {
  readonly adverse: number;
  readonly favorable: number;
}

/**
 * Maximum adverse and favorable excursion (J. Sweeney, "Campaign Trading", 1996) of a closed trade,
 * before fees. They cover the bars from the entry to the one before the exit, and the exit price: the
 * range of the last bar may come after the exit. The range of the first bar counts in full, since
 * orders fill at the open by default.
 */
export function excursionOf(trade: Trade, bars: Bars): Excursion {
  const { side, entry_time, exit_time, entry_price, exit_price } = trade;
  let low = Math.min(entry_price, exit_price);
  let high = Math.max(entry_price, exit_price);
  const start = firstAtLeast(bars.time, entry_time, 0);
  const end = firstAtLeast(bars.time, exit_time, start);
  for (let bar = start; bar < end; bar += 1) {
    if (bars.low[bar]! < low) low = bars.low[bar]!;
    if (bars.high[bar]! > high) high = bars.high[bar]!;
  }
  const [down, up] = [1 - low / entry_price, high / entry_price - 1];
  return side === 'long' ? { adverse: down, favorable: up } : { adverse: up, favorable: down };
}
