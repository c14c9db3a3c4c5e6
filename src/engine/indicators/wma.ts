import { checkPeriod, type Indicator } from './indicator.ts';
import { CompensatedSum, RollingSum } from './sums.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Linearly weighted moving average: the newest value has the weight `period`, the oldest 1. Ready
 * at bar `period`. Like {@link Sma}, it is rounded once and does not drift.
 */
export class Wma implements Indicator {
  private readonly window: RollingSum;
  private readonly weighted = new CompensatedSum();
  private readonly weights: number;

  constructor(period: number) {
    this.window = new RollingSum(checkPeriod('period', period));
    this.weights = (period * (period + 1)) / 2;
  }

  get ready(): boolean {
    return this.window.full;
  }

  get value(): number {
    return this.window.full ? this.weighted.dividedBy(this.weights) : NaN;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      const { window, weighted } = this;
      // The weight of each value in the window decreases by one, so that the oldest reaches 0.
      weighted.add(-window.high);
      weighted.add(-window.low);
      weighted.addProduct(window.size, x);
      window.push(x);
    }
    return this.value;
  }
}

/** Declares {@link Wma} of `input`. */
export function wma(input: Series, period: number): Series {
  return declare(WMA, [input], [period]).value;
}

export const WMA: IndicatorKind<[period: number], Wma, 'value'> = {
  name: 'wma',
  lines: ['value'],
  scale: 'input',
  start: (period) => new Wma(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
