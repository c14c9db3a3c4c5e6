import type { Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';
import { ofAll } from '../series/warm-up.ts';

/**
 * On-balance volume (Granville): the volume of bars that closed higher minus the volume of bars
 * that closed lower. It starts at 0, so only its changes are meaningful. Ready at the first bar.
 */
export class Obv implements Indicator {
  private balance = NaN;
  private previousClose = NaN;

  get ready(): boolean {
    return !Number.isNaN(this.balance);
  }

  get value(): number {
    return this.balance;
  }

  next(close: number, volume: number): number {
    if (Number.isFinite(close + volume)) {
      if (!this.ready) this.balance = 0;
      else if (close > this.previousClose) this.balance += volume;
      else if (close < this.previousClose) this.balance -= volume;
      this.previousClose = close;
    }
    return this.balance;
  }
}

/** Declares {@link Obv}. */
export function obv(bars: Pick<BarSeries, 'close' | 'volume'>): Series {
  return declare(OBV, [bars.close, bars.volume], []).value;
}

export const OBV: IndicatorKind<[], Obv, 'value'> = {
  name: 'obv',
  lines: ['value'],
  scale: 'own',
  start: () => new Obv(),
  warmUp: () => ofAll(1),
  fill(machine, [close, volume], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(close[at]!, volume[at]!);
  },
};
