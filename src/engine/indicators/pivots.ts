import { DAY } from '../../base/durations.ts';
import type { Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { tradingDays } from './trading-days.ts';
import { declare, type BarSeries, type Lines } from '../series/declared-series.ts';

/**
 * Floor pivots of the UTC day before: `pivot` is the mean of its high, low and close; `r1` and `s1` are
 * as far above and below the pivot as the pivot is from its low and high; `r2` and `s2` lie its range
 * above and below the pivot. `value` is `pivot`. Ready at the first bar of the second day.
 */
export class Pivots implements Indicator {
  private day = NaN;
  private high = NaN;
  private low = NaN;
  private close = NaN;
  pivot = NaN;
  r1 = NaN;
  s1 = NaN;
  r2 = NaN;
  s2 = NaN;

  get ready(): boolean {
    return !Number.isNaN(this.pivot);
  }

  get value(): number {
    return this.pivot;
  }

  next(time: number, high: number, low: number, close: number): number {
    if (Number.isFinite(time + high + low + close)) {
      const day = Math.floor(time / DAY);
      if (day === this.day) {
        this.high = Math.max(this.high, high);
        this.low = Math.min(this.low, low);
      } else {
        if (!Number.isNaN(this.day)) this.set();
        this.day = day;
        this.high = high;
        this.low = low;
      }
      this.close = close;
    }
    return this.pivot;
  }

  private set(): void {
    const { high, low, close } = this;
    const pivot = (high + low + close) / 3;
    this.pivot = pivot;
    this.r1 = 2 * pivot - low;
    this.s1 = 2 * pivot - high;
    this.r2 = pivot + (high - low);
    this.s2 = pivot - (high - low);
  }
}

/**
 * Declares {@link Pivots}. With `universe.calendar`, days are the sessions of the exchange, and bars
 * outside of them do not count.
 */
export function pivots(
  bars: Pick<BarSeries, 'time' | 'high' | 'low' | 'close' | 'timeframe' | 'calendar'>,
): Lines<PivotsLine> {
  return declare(PIVOTS, [tradingDays(bars), bars.high, bars.low, bars.close], []);
}

type PivotsLine = 'pivot' | 'r1' | 's1' | 'r2' | 's2';

export const PIVOTS: IndicatorKind<[], Pivots, PivotsLine> = {
  name: 'pivots',
  lines: ['pivot', 'r1', 's1', 'r2', 's2'],
  scale: 'price',
  start: () => new Pivots(),
  warmUp: () => ({
    ready: { entries: 1, days: 1 },
    // A first day that began before the bars is only known in part.
    settled: { entries: 1, days: 2 },
  }),
  fill(machine, [time, high, low, close], [pivot, r1, s1, r2, s2], from, to) {
    for (let at = from; at < to; at++) {
      machine.next(time[at]!, high[at]!, low[at]!, close[at]!);
      pivot[at] = machine.pivot;
      r1[at] = machine.r1;
      s1[at] = machine.s1;
      r2[at] = machine.r2;
      s2[at] = machine.s2;
    }
  },
};
