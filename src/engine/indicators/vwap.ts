import type { Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';

const DAY_MS = 86_400_000;

/**
 * Volume-weighted average price of the session so far: the typical price (high + low + close) / 3
 * weighted by volume. A session is the UTC day of `time`, the opening instant of the bar in
 * milliseconds since the epoch. Ready at the first bar.
 *
 * Until a session has volume, the value is the typical price of the newest bar.
 */
export class Vwap implements Indicator {
  private day = NaN;
  private volume = -0;
  private average = NaN;

  get ready(): boolean {
    return !Number.isNaN(this.average);
  }

  get value(): number {
    return this.average;
  }

  next(time: number, high: number, low: number, close: number, volume: number): number {
    if (Number.isFinite(time + high + low + close + volume)) {
      const day = Math.floor(time / DAY_MS);
      if (day !== this.day) {
        this.day = day;
        this.volume = 0;
      }
      const typical = (high + low + close) / 3;
      const before = this.volume;
      this.volume += volume;
      if (before === 0) this.average = typical;
      else this.average += (typical - this.average) * (volume / this.volume);
    }
    return this.average;
  }
}

/** Declares {@link Vwap}. */
export function vwap(bars: BarSeries): Series {
  return declare(VWAP, [bars.time, bars.high, bars.low, bars.close, bars.volume], []).value;
}

const VWAP: IndicatorKind<[], Vwap, 'value'> = {
  name: 'vwap',
  lines: ['value'],
  start: () => new Vwap(),
  fill(machine, [time, high, low, close, volume], [value], from, to) {
    for (let at = from; at < to; at++)
      value[at] = machine.next(time[at]!, high[at]!, low[at]!, close[at]!, volume[at]!);
  },
};
