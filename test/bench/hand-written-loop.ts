import type { Bars } from '../../src/market/bars.ts';

/**
 * The floor that the engine is measured against: an SMA crossover by hand over typed arrays, with
 * the same fills and fees and an equity curve, and nothing else. It knows no orders, no risk limits,
 * no events, no trades and no second strategy. Final equity.
 */
export function handWrittenLoop(bars: Bars, fast: number, slow: number): number {
  const { open, close, length } = bars;
  const equity = new Float64Array(length);
  const fee = 0.001;
  let cash = 100_000;
  let position = 0;
  let fastSum = 0;
  let slowSum = 0;
  let previousFast = Number.NaN;
  let previousSlow = Number.NaN;
  let signal = 0;
  for (let i = 0; i < length; i += 1) {
    if (signal > 0 && position === 0) {
      position = cash / (open[i]! * (1 + fee));
      cash = 0;
    } else if (signal < 0 && position > 0) {
      cash = position * open[i]! * (1 - fee);
      position = 0;
    }
    signal = 0;
    const price = close[i]!;
    equity[i] = cash + position * price;
    fastSum += price;
    slowSum += price;
    if (i >= fast) fastSum -= close[i - fast]!;
    if (i >= slow) slowSum -= close[i - slow]!;
    if (i >= slow - 1) {
      const a = fastSum / fast;
      const b = slowSum / slow;
      if (a > b && previousFast <= previousSlow) signal = 1;
      else if (a < b && previousFast >= previousSlow) signal = -1;
      previousFast = a;
      previousSlow = b;
    }
  }
  return equity[length - 1]!;
}
