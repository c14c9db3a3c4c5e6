import type { Bars } from '../market/bars.ts';

/**
 * Equity at each of the times if the cash had been divided equally among the instruments, each bought
 * at the close of its first bar and held, without costs.
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
