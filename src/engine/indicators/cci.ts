import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingSum } from './sums.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Commodity channel index (Lambert, 1980): the distance of the typical price (high + low + close) / 3
 * from its mean over `period` bars, in units of 0.015 mean absolute deviations. Ready at bar `period`,
 * which is at least 2. A flat window gives 0.
 */
export class Cci implements Indicator {
  private readonly window: RollingSum;
  private index = NaN;

  constructor(period: number) {
    this.window = new RollingSum(checkPeriod('period', period, 2));
  }

  get ready(): boolean {
    return this.window.full;
  }

  get value(): number {
    return this.index;
  }

  next(high: number, low: number, close: number): number {
    const typical = (high + low + close) / 3;
    if (Number.isFinite(typical)) {
      const mean = this.window.roll(typical);
      if (this.ready) {
        const deviation = this.meanDeviation(mean);
        this.index = deviation === 0 ? 0 : (typical - mean) / (0.015 * deviation);
      }
    }
    return this.index;
  }

  private meanDeviation(mean: number): number {
    const { values, size } = this.window;
    let sum = 0;
    for (let at = 0; at < size; at++) sum += Math.abs(values[at]! - mean);
    return sum / size;
  }
}

/** Declares {@link Cci}. */
export function cci(bars: Pick<BarSeries, 'high' | 'low' | 'close'>, period = 20): Series {
  return declare(CCI, [bars.high, bars.low, bars.close], [period]).value;
}

export const CCI: IndicatorKind<[period: number], Cci, 'value'> = {
  name: 'cci',
  lines: ['value'],
  scale: 'own',
  start: (period) => new Cci(period),
  warmUp: (period) => ofWindow(period),
  fill(machine, [high, low, close], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(high[at]!, low[at]!, close[at]!);
  },
};
