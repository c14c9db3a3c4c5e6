import { checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofAverage, type WarmUp } from '../series/warm-up.ts';

/**
 * Exponential moving average: the mean of the first `period` values, then
 * `average + α (x − average)` with α = 2 / (period + 1). Ready at bar `period`.
 *
 * Libraries that start from the first value instead of a mean give other values for the first bars.
 */
export class Ema implements Indicator {
  private readonly period: number;
  private readonly weight: number;
  private average = -0;
  private count = 0;

  constructor(period: number) {
    this.period = checkPeriod('period', period);
    this.weight = 2 / (period + 1);
  }

  get ready(): boolean {
    return this.count === this.period;
  }

  get value(): number {
    return this.ready ? this.average : NaN;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      if (this.ready) {
        this.average += (x - this.average) * this.weight;
      } else {
        this.count++;
        this.average += (x - this.average) / this.count;
      }
    }
    return this.value;
  }
}

/** Declares {@link Ema} of `input`. */
export function ema(input: Series, period: number): Series {
  return declare(EMA, [input], [period]).value;
}

export const EMA: IndicatorKind<[period: number], Ema, 'value'> = {
  name: 'ema',
  lines: ['value'],
  scale: 'input',
  start: (period) => new Ema(period),
  warmUp: emaWarmUp,
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};

export function emaWarmUp(period: number): WarmUp {
  return ofAverage(period, 2 / (period + 1));
}
