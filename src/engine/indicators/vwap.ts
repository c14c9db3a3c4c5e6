import { DAY } from '../../base/durations.ts';
import type { Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { tradingDays } from './trading-days.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';

/**
 * Volume-weighted average price of the session so far: the typical price (high + low + close) / 3
 * weighted by volume. A session lasts a day, from `sessionStart` minutes after midnight UTC; `time` is
 * the opening instant of the bar in milliseconds since the epoch. Ready at the first bar.
 *
 * Until a session has volume, the value is the typical price of the newest bar.
 */
export class Vwap implements Indicator {
  private day = NaN;
  private volume = -0;
  private average = NaN;
  private readonly sessionStart: number;

  /** @param sessionStart at least 0 and below 1440. */
  constructor(sessionStart = 0) {
    if (!(sessionStart >= 0 && sessionStart < 1440)) {
      throw new RangeError(`sessionStart must be at least 0 and below 1440, not ${sessionStart}`);
    }
    this.sessionStart = sessionStart * 60_000;
  }

  get ready(): boolean {
    return !Number.isNaN(this.average);
  }

  get value(): number {
    return this.average;
  }

  next(time: number, high: number, low: number, close: number, volume: number): number {
    if (Number.isFinite(time + high + low + close + volume)) {
      const day = Math.floor((time - this.sessionStart) / DAY);
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

/**
 * Declares {@link Vwap}. `sessionStart` is in minutes after midnight UTC. With `universe.calendar`,
 * it restarts with each session of the exchange, and bars outside of sessions do not count.
 *
 * @throws RangeError if `sessionStart` is out of range, or is given although there is a calendar.
 */
export function vwap(bars: BarSeries, sessionStart = 0): Series {
  if (bars.calendar !== '24/7' && sessionStart !== 0) {
    throw new RangeError(`vwap: omit sessionStart, since universe.calendar is ${bars.calendar}`);
  }
  const inputs = [tradingDays(bars), bars.high, bars.low, bars.close, bars.volume];
  return declare(VWAP, inputs, [sessionStart]).value;
}

export const VWAP: IndicatorKind<[sessionStart: number], Vwap, 'value'> = {
  name: 'vwap',
  lines: ['value'],
  scale: 'price',
  start: (sessionStart) => new Vwap(sessionStart),
  warmUp: () => ({ ready: { entries: 1, days: 0 }, settled: { entries: 1, days: 1 } }),
  fill(machine, [time, high, low, close, volume], [value], from, to) {
    for (let at = from; at < to; at++)
      value[at] = machine.next(time[at]!, high[at]!, low[at]!, close[at]!, volume[at]!);
  },
};
