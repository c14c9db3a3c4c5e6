import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMoments } from './rolling-moments.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Rolling standard deviation of the population (divisor `period`, not `period − 1`). Ready at bar
 * `period`, which is at least 2. A flat window gives exactly 0.
 */
export class StandardDeviation implements Indicator {
  private readonly moments: RollingMoments;
  private deviation = NaN;

  constructor(period: number) {
    this.moments = new RollingMoments(checkPeriod('period', period, 2));
  }

  get ready(): boolean {
    return this.moments.full;
  }

  get value(): number {
    return this.deviation;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      this.moments.push(x);
      if (this.moments.full) this.deviation = this.moments.deviation;
    }
    return this.deviation;
  }
}

/** Declares {@link StandardDeviation} of `input`. */
export function standardDeviation(input: Series, period: number): Series {
  return declare(STANDARD_DEVIATION, [input], [period]).value;
}

export const STANDARD_DEVIATION: IndicatorKind<[period: number], StandardDeviation, 'value'> = {
  name: 'standardDeviation',
  lines: ['value'],
  scale: 'own',
  start: (period) => new StandardDeviation(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
