import { checkPeriod } from './indicator.ts';
import type { Indicator } from './indicator.ts';
import { RollingSum } from './sums.ts';

/**
 * Simple moving average. Ready at bar `period`.
 *
 * It is the exact mean of the window rounded once, so it does not drift, and in a flat market
 * averages of any period equal the price and one another: they never cross on rounding alone.
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
}
