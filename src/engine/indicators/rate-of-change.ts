import { checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Rate of change: the change since `period` values before, in percent of the value then. Ready at
 * bar `period + 1`. A change from 0 counts as 0.
 */
export class RateOfChange implements Indicator {
  private readonly last: Float64Array;
  private count = 0;
  private change = NaN;

  constructor(period: number) {
    this.last = new Float64Array(checkPeriod('period', period));
  }

  get ready(): boolean {
    return this.count > this.last.length;
  }

  get value(): number {
    return this.change;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      const { last } = this;
      const place = this.count % last.length;
      const before = last[place]!;
      last[place] = x;
      this.count++;
      if (this.ready) this.change = before === 0 ? 0 : 100 * ((x - before) / before);
    }
    return this.change;
  }
}

/** Declares {@link RateOfChange} of `input`. */
export function rateOfChange(input: Series, period: number): Series {
  return declare(RATE_OF_CHANGE, [input], [period]).value;
}

export const RATE_OF_CHANGE: IndicatorKind<[period: number], RateOfChange, 'value'> = {
  name: 'rateOfChange',
  lines: ['value'],
  scale: 'own',
  start: (period) => new RateOfChange(period),
  warmUp: (period) => ofWindow(period + 1),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
