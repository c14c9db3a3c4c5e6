import { checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofAverage, type WarmUp } from '../series/warm-up.ts';

/**
 * Wilder's smoothing ("New Concepts in Technical Trading Systems", 1978), also called RMA or SMMA:
 * the mean of the first `period` values, then `average + (x − average) / period`. Ready at value
 * `period`.
 */
export class WilderAverage implements Indicator {
  private readonly period: number;
  private average = -0;
  private count = 0;

  constructor(period: number) {
    this.period = checkPeriod('period', period);
  }

  get ready(): boolean {
    return this.count === this.period;
  }

  get value(): number {
    return this.ready ? this.average : NaN;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      // While the count grows, division by it gives the simple mean.
      if (this.count < this.period) this.count++;
      this.average += (x - this.average) / this.count;
    }
    return this.value;
  }
}

/** Declares {@link WilderAverage} of `input`. */
export function wilder(input: Series, period: number): Series {
  return declare(WILDER, [input], [period]).value;
}

export const WILDER: IndicatorKind<[period: number], WilderAverage, 'value'> = {
  name: 'wilder',
  lines: ['value'],
  scale: 'input',
  start: (period) => new WilderAverage(period),
  warmUp: wilderWarmUp,
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};

export function wilderWarmUp(period: number): WarmUp {
  return ofAverage(period, 1 / period);
}
