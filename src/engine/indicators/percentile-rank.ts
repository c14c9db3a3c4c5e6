import { checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Percentile rank, 0 to 100: the share of the `period` values before the newest one that are at most as
 * high, in percent. Ready at bar `period + 1`. A step takes time in proportion to `period`.
 */
export class PercentileRank implements Indicator {
  private readonly last: Float64Array;
  private count = 0;
  private rank = NaN;

  constructor(period: number) {
    this.last = new Float64Array(checkPeriod('period', period));
  }

  get ready(): boolean {
    return this.count > this.last.length;
  }

  get value(): number {
    return this.rank;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      const { last } = this;
      const { length } = last;
      const place = this.count % length;
      this.count++;
      if (this.ready) {
        let covered = 0;
        for (let at = 0; at < length; at++) if (last[at]! <= x) covered++;
        this.rank = (100 * covered) / length;
      }
      last[place] = x;
    }
    return this.rank;
  }
}

/** Declares {@link PercentileRank} of `input`. */
export function percentileRank(input: Series, period: number): Series {
  return declare(PERCENTILE_RANK, [input], [period]).value;
}

export const PERCENTILE_RANK: IndicatorKind<[period: number], PercentileRank, 'value'> = {
  name: 'percentileRank',
  lines: ['value'],
  scale: 'own',
  start: (period) => new PercentileRank(period),
  warmUp: (period) => ofWindow(period + 1),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
