import { checkPeriod, type Indicator } from './indicator.ts';
import { RollingSum } from './sums.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Money flow index (Quong and Soudack, 1989), 0 to 100: the share of rising bars in the money flow of
 * `period` bars. The flow of a bar is its typical price (high + low + close) / 3 times its volume. It
 * rises if the typical price is above that of the bar before. Ready at bar `period + 1`.
 *
 * Bars with an unchanged price do not count. Without any flow, the index is 50.
 */
export class Mfi implements Indicator {
  private readonly rising: RollingSum;
  private readonly falling: RollingSum;
  private previous = NaN;

  constructor(period: number) {
    this.rising = new RollingSum(checkPeriod('period', period));
    this.falling = new RollingSum(period);
  }

  get ready(): boolean {
    return this.rising.full;
  }

  get value(): number {
    if (!this.ready) return NaN;
    const rising = this.rising.mean;
    const flow = rising + this.falling.mean;
    return flow === 0 ? 50 : 100 * (rising / flow);
  }

  next(high: number, low: number, close: number, volume: number): number {
    const typical = (high + low + close) / 3;
    const flow = typical * volume;
    if (Number.isFinite(flow)) {
      if (!Number.isNaN(this.previous)) {
        this.rising.roll(typical > this.previous ? flow : 0);
        this.falling.roll(typical < this.previous ? flow : 0);
      }
      this.previous = typical;
    }
    return this.value;
  }
}

/** Declares {@link Mfi}. */
export function mfi(
  bars: Pick<BarSeries, 'high' | 'low' | 'close' | 'volume'>,
  period = 14,
): Series {
  return declare(MFI, [bars.high, bars.low, bars.close, bars.volume], [period]).value;
}

export const MFI: IndicatorKind<[period: number], Mfi, 'value'> = {
  name: 'mfi',
  lines: ['value'],
  scale: 'own',
  start: (period) => new Mfi(period),
  warmUp: (period) => ofWindow(period + 1),
  fill(machine, [high, low, close, volume], [value], from, to) {
    for (let at = from; at < to; at++) {
      value[at] = machine.next(high[at]!, low[at]!, close[at]!, volume[at]!);
    }
  },
};
