import type { Indicator } from './indicator.ts';
import { WilderAverage, wilderWarmUp } from './wilder.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';

/**
 * Average true range (Wilder, 1978): Wilder's average of the true range, which for the first bar
 * is its high less its low. Ready at bar `period`.
 */
export class Atr implements Indicator {
  private readonly ranges: WilderAverage;
  private previousClose = NaN;

  constructor(period: number) {
    this.ranges = new WilderAverage(period);
  }

  get ready(): boolean {
    return this.ranges.ready;
  }

  get value(): number {
    return this.ranges.value;
  }

  next(high: number, low: number, close: number): number {
    if (Number.isFinite(high + low + close)) {
      const { previousClose } = this;
      this.ranges.next(
        Number.isNaN(previousClose) ? high - low : trueRange(high, low, previousClose),
      );
      this.previousClose = close;
    }
    return this.value;
  }
}

/** The bar's range, extended to the close before it. */
export function trueRange(high: number, low: number, previousClose: number): number {
  return Math.max(high, previousClose) - Math.min(low, previousClose);
}

/** Declares {@link Atr}. */
export function atr(bars: Pick<BarSeries, 'high' | 'low' | 'close'>, period = 14): Series {
  return declare(ATR, [bars.high, bars.low, bars.close], [period]).value;
}

export const ATR: IndicatorKind<[period: number], Atr, 'value'> = {
  name: 'atr',
  lines: ['value'],
  scale: 'own',
  start: (period) => new Atr(period),
  warmUp: wilderWarmUp,
  fill(machine, [high, low, close], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(high[at]!, low[at]!, close[at]!);
  },
};
