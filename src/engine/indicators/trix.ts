import { Ema, emaWarmUp } from './ema.ts';
import { checkPeriod, type Indicator } from './indicator.ts';
import { RateOfChange } from './rate-of-change.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { inTurn, ofWindow } from '../series/warm-up.ts';

/**
 * TRIX (Hutson, 1983): the change of a triple exponential average since the bar before, in percent.
 * Ready at bar `3 × period − 1`.
 */
export class Trix implements Indicator {
  private readonly first: Ema;
  private readonly second: Ema;
  private readonly third: Ema;
  private readonly change = new RateOfChange(1);

  constructor(period: number) {
    this.first = new Ema(checkPeriod('period', period));
    this.second = new Ema(period);
    this.third = new Ema(period);
  }

  get ready(): boolean {
    return this.change.ready;
  }

  get value(): number {
    return this.change.value;
  }

  next(x: number): number {
    // Each average ignores the NaN of the one before.
    return Number.isFinite(x)
      ? this.change.next(this.third.next(this.second.next(this.first.next(x))))
      : this.value;
  }
}

/** Declares {@link Trix} of `input`. */
export function trix(input: Series, period: number): Series {
  return declare(TRIX, [input], [period]).value;
}

export const TRIX: IndicatorKind<[period: number], Trix, 'value'> = {
  name: 'trix',
  lines: ['value'],
  scale: 'own',
  start: (period) => new Trix(period),
  warmUp: (period) => inTurn(emaWarmUp(period), emaWarmUp(period), emaWarmUp(period), ofWindow(2)),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
