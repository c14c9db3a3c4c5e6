import { checkMultiplier, checkPeriod, type Indicator } from './indicator.ts';
import { RollingMoments } from './rolling-moments.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Lines, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Bollinger bands: `middle` is the simple moving average, `upper` and `lower` lie `k` standard
 * deviations of the population from it; `value` is `middle`. Ready at bar `period`, which is at
 * least 2.
 */
export class Bollinger implements Indicator {
  private readonly moments: RollingMoments;
  private readonly k: number;
  private mean = NaN;
  private width = NaN;

  constructor(period: number, k: number) {
    this.moments = new RollingMoments(checkPeriod('period', period, 2));
    this.k = checkMultiplier('k', k);
  }

  get ready(): boolean {
    return this.moments.full;
  }

  get value(): number {
    return this.mean;
  }

  get upper(): number {
    return this.mean + this.width;
  }

  get middle(): number {
    return this.mean;
  }

  get lower(): number {
    return this.mean - this.width;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      const { moments } = this;
      moments.push(x);
      if (moments.full) {
        this.mean = moments.mean;
        this.width = this.k * moments.deviation;
      }
    }
    return this.mean;
  }
}

/** Declares {@link Bollinger} bands of `input`. */
export function bollinger(input: Series, period = 20, k = 2): Lines<BollingerLine> {
  return declare(BOLLINGER, [input], [period, k]);
}

type BollingerLine = 'middle' | 'upper' | 'lower';

export const BOLLINGER: IndicatorKind<[period: number, k: number], Bollinger, BollingerLine> = {
  name: 'bollinger',
  lines: ['middle', 'upper', 'lower'],
  scale: 'input',
  start: (period, k) => new Bollinger(period, k),
  warmUp: (period) => ofWindow(period),
  fill(machine, [input], [middle, upper, lower], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(input[at]!);
      middle[at] = machine.middle;
      upper[at] = machine.upper;
      lower[at] = machine.lower;
    }
  },
};
