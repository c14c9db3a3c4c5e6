/** Comparison of indicators with other implementations. */
import { EMA, SMA } from 'trading-signals';
import type { Indicator } from '../../src/engine/indicators/indicator.ts';
import type { Lines, Series } from '../../src/engine/series/declared-series.ts';
import type { Bar, IndicatorCase, RunningIndicator } from './indicator-contract.ts';

/** An indicator with the columns that it reads and its lines besides `value`. */
export function run<I extends Indicator>(
  indicator: I,
  step: (indicator: I, bar: Bar) => number,
  lines: (indicator: I) => number[] = () => [],
): RunningIndicator {
  return { indicator, step: (bar) => step(indicator, bar), lines: () => lines(indicator) };
}

export function seriesOf<L extends string>(declared: Lines<L>, ...names: readonly L[]): Series[] {
  return names.map((name) => declared[name]);
}

/** Invalid periods. */
export const refusedPeriods = (
  parameter: string,
  construct: (period: number) => Indicator,
): IndicatorCase['refused'] =>
  [0, -1, 2.5, NaN, Infinity].map((period) => [parameter, () => construct(period)]);

/** The average of trading-signals, started with the mean of the first values like ours. */
export class MeanSeededEma extends EMA {
  private readonly seed: SMA;

  constructor(interval: number) {
    super(interval);
    this.seed = new SMA(interval);
  }

  override update(price: number, replace: boolean): number {
    if (this.seed.isStable) return super.update(price, replace);
    const mean = this.seed.update(price, replace);
    return mean === null ? NaN : super.update(mean, replace);
  }
}

/** An output, several, or none yet. */
export type Output = number | readonly number[] | null;

/**
 * Finds the first difference between `actual` and `expected` above the relative `tolerance`; values below
 * a thousandth are compared relative to a thousandth.
 */
export function firstDifference(
  actual: readonly (readonly number[])[],
  expected: readonly Output[],
  tolerance = 1e-9,
): string | undefined {
  let compared = 0;
  for (const [bar, output] of expected.entries()) {
    const values = [output ?? []].flat();
    if (values.some(Number.isNaN)) continue;
    for (const [line, value] of values.entries()) {
      const ours = actual[bar]![line]!;
      const close = Math.abs(ours - value) <= tolerance * Math.max(Math.abs(value), 1e-3);
      if (!close) return `bar ${bar}, output ${line}: ${ours} instead of ${value}`;
      compared++;
    }
  }
  return compared < expected.length / 2 ? 'too little to compare' : undefined;
}

export const closes = (bars: readonly Bar[]): number[] => bars.map((bar) => bar.close);

/** The last `size` values at each position, or null if there are fewer. */
export function windows<T>(values: readonly T[], size: number): (T[] | null)[] {
  return values.map((_, index) =>
    index + 1 < size ? null : values.slice(index + 1 - size, index + 1),
  );
}
