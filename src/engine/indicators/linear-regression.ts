import { checkPeriod, type Indicator } from './indicator.ts';
import { CompensatedSum, RollingSum } from './sums.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Lines, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Straight line of least squares through the last `period` values: `value` is its end at the newest
 * one, `slope` its rise per bar. Ready at bar `period`, which is at least 2.
 */
export class LinearRegression implements Indicator {
  private readonly window: RollingSum;
  /** Sum of the values, the oldest once and the newest `period` times. */
  private readonly weighted = new CompensatedSum();
  private end = NaN;
  slope = NaN;

  constructor(period: number) {
    this.window = new RollingSum(checkPeriod('period', period, 2));
  }

  get ready(): boolean {
    return this.window.full;
  }

  get value(): number {
    return this.end;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      const { window, weighted } = this;
      const { size } = window;
      weighted.add(-window.high);
      weighted.add(-window.low);
      weighted.addProduct(size, x);
      window.push(x);
      if (this.ready) {
        const { mean } = window;
        const weights = (size * (size + 1)) / 2;
        this.slope = (6 * (weighted.dividedBy(weights) - mean)) / (size - 1);
        this.end = mean + (this.slope * (size - 1)) / 2;
      }
    }
    return this.end;
  }
}

/** Declares {@link LinearRegression}. `end` is its value. */
export function linearRegression(input: Series, period: number): Lines<LinearRegressionLine> {
  return declare(LINEAR_REGRESSION, [input], [period]);
}

type LinearRegressionLine = 'end' | 'slope';

export const LINEAR_REGRESSION: IndicatorKind<
  [period: number],
  LinearRegression,
  LinearRegressionLine
> = {
  name: 'linearRegression',
  lines: ['end', 'slope'],
  scale: { end: 'input', slope: 'own' },
  start: (period) => new LinearRegression(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [input], [end, slope], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(input[at]!);
      end[at] = machine.value;
      slope[at] = machine.slope;
    }
  },
};
