import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMoments } from './rolling-moments.ts';
import { CompensatedSum, covariance } from './sums.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Pearson correlation of the last `period` pairs, −1 to 1. Ready at bar `period`, which is at
 * least 2.
 *
 * Correlation with a flat series is undefined. The value is 0 then, because a flat series carries
 * no information about the other.
 */
export class Correlation implements Indicator {
  private readonly a: RollingMoments;
  private readonly b: RollingMoments;
  private readonly products = new CompensatedSum();
  private coefficient = NaN;

  constructor(period: number) {
    checkPeriod('period', period, 2);
    this.a = new RollingMoments(period);
    this.b = new RollingMoments(period);
  }

  get ready(): boolean {
    return this.a.full;
  }

  get value(): number {
    return this.coefficient;
  }

  next(a: number, b: number): number {
    if (Number.isFinite(a) && Number.isFinite(b)) {
      const leavingA = this.a.push(a);
      const leavingB = this.b.push(b);
      this.products.addProduct(a, b);
      this.products.addProduct(-leavingA, leavingB);
      if (this.ready) this.coefficient = this.correlate();
    }
    return this.coefficient;
  }

  private correlate(): number {
    const { a, b, products } = this;
    const scale = a.deviation * b.deviation;
    if (scale === 0) return 0;
    const coefficient = covariance(products, a.sum, b.sum) / scale;
    return Math.min(Math.max(coefficient, -1), 1);
  }
}

/** Declares {@link Correlation} of `a` and `b`. */
export function correlation(a: Series, b: Series, period: number): Series {
  return declare(CORRELATION, [a, b], [period]).value;
}

export const CORRELATION: IndicatorKind<[period: number], Correlation, 'value'> = {
  name: 'correlation',
  lines: ['value'],
  scale: 'own',
  start: (period) => new Correlation(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [a, b], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(a[at]!, b[at]!);
  },
};
