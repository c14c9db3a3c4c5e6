import type { Bars } from '../market/bars.ts';

/**
 * Equity of buying equal shares of the instruments, each at the close of its first bar, and holding
 * them, without costs: one value for each of the times. The share of an instrument is cash until then.
 */
export function holdEquity(
  instruments: readonly { readonly bars: Bars }[],
  time: Float64Array,
  initialCash: number,
): Float64Array {
  const equity = new Float64Array(time.length);
  const share = initialCash / instruments.length;
  for (const { bars } of instruments) {
    const units = share / bars.close[0]!;
    let next = 0;
    for (let step = 0; step < time.length; step += 1) {
      while (next < bars.length && bars.time[next]! <= time[step]!) next += 1;
      equity[step]! += next === 0 ? share : units * bars.close[next - 1]!;
    }
  }
  return equity;
}
