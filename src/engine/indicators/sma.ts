import { checkPeriod, type Indicator } from './indicator.ts';
import { rollColumn, RollingSum } from './sums.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Simple moving average. Ready at bar `period`.
 *
 * The value is the exact mean of the window, rounded once. It does not drift, and in a flat market
 * averages of all periods equal the price, so that rounding never makes two averages cross.
 */
export class Sma implements Indicator {
  private readonly window: RollingSum;

  constructor(period: number) {
    this.window = new RollingSum(checkPeriod('period', period));
  }

  get ready(): boolean {
    return this.window.full;
  }

  get value(): number {
    return this.window.full ? this.window.mean : NaN;
  }

  next(x: number): number {
    return Number.isFinite(x) ? this.window.roll(x) : this.value;
  }

  /** Writes `next` of the entries `from ≤ index < to` of a column. */
  nextColumn(input: Float64Array, values: Float64Array, from: number, to: number): void {
    let areFinite = true;
    for (let at = from; at < to; at++) areFinite &&= Number.isFinite(input[at]);
    if (areFinite) rollColumn(this.window, input, values, from, to);
    else for (let at = from; at < to; at++) values[at] = this.next(input[at]!);
  }
}

/** Declares {@link Sma} of `input`. */
export function sma(input: Series, period: number): Series {
  return declare(SMA, [input], [period]).value;
}

export const SMA: IndicatorKind<[period: number], Sma, 'value'> = {
  name: 'sma',
  lines: ['value'],
  scale: 'input',
  start: (period) => new Sma(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [input], [value], from, to) {
    machine.nextColumn(input, value, from, to);
  },
};
