import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingMaximum } from './rolling-maximum.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Williams %R, −100 to 0: how far the close lies below the highest high of the last `period` bars, in
 * percent of their range. Ready at bar `period`. A window without a range counts as −50.
 */
export class WilliamsR implements Indicator {
  private readonly highs: RollingMaximum;
  private readonly negatedLows: RollingMaximum;
  private position = NaN;

  constructor(period: number) {
    this.highs = new RollingMaximum(checkPeriod('period', period));
    this.negatedLows = new RollingMaximum(period);
  }

  get ready(): boolean {
    return this.highs.ready;
  }

  get value(): number {
    return this.position;
  }

  next(high: number, low: number, close: number): number {
    if (Number.isFinite(high + low + close)) {
      const highest = this.highs.next(high);
      const lowest = -this.negatedLows.next(-low);
      const range = highest - lowest;
      this.position = range === 0 ? -50 : -100 * ((highest - close) / range);
    }
    return this.position;
  }
}

/** Declares {@link WilliamsR}. */
export function williamsR(bars: Pick<BarSeries, 'high' | 'low' | 'close'>, period = 14): Series {
  return declare(WILLIAMS_R, [bars.high, bars.low, bars.close], [period]).value;
}

export const WILLIAMS_R: IndicatorKind<[period: number], WilliamsR, 'value'> = {
  name: 'williamsR',
  lines: ['value'],
  scale: 'own',
  start: (period) => new WilliamsR(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [high, low, close], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(high[at]!, low[at]!, close[at]!);
  },
};
