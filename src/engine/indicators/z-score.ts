import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMoments } from './rolling-moments.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Distance of the newest value from the mean of the last `period` values, including itself, in
 * standard deviations of the population. Ready at bar `period`, which is at least 2.
 *
 * A flat window gives 0, because its newest value equals the mean.
 */
export class ZScore implements Indicator {
  private readonly moments: RollingMoments;
  private score = NaN;

  constructor(period: number) {
    this.moments = new RollingMoments(checkPeriod('period', period, 2));
  }

  get ready(): boolean {
    return this.moments.full;
  }

  get value(): number {
    return this.score;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      const { moments } = this;
      moments.push(x);
      if (moments.full) {
        const { mean, deviation } = moments;
        this.score = deviation === 0 ? 0 : (x - mean) / deviation;
      }
    }
    return this.score;
  }
}

/** Declares {@link ZScore} of `input`. */
export function zScore(input: Series, period: number): Series {
  return declare(Z_SCORE, [input], [period]).value;
}

export const Z_SCORE: IndicatorKind<[period: number], ZScore, 'value'> = {
  name: 'zScore',
  lines: ['value'],
  scale: 'own',
  start: (period) => new ZScore(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
