import { Periods } from '../../market/periods.ts';
import { parseTimeframe, type TimeframeName } from '../../market/timeframe.ts';
import { calendarOf, type CalendarName } from '../../market/trading-calendar.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type BarSeries, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/**
 * Declares the times by which indicators find the trading day of a bar. Without a calendar, these are
 * the times of the bars. With one, they are midnight UTC of the date of the session, and NaN for bars
 * outside of all sessions.
 */
export function tradingDays({
  time,
  timeframe,
  calendar,
}: Pick<BarSeries, 'time' | 'timeframe' | 'calendar'>): Series {
  return calendar === '24/7' ? time : declare(TRADING_DAYS, [time], [calendar, timeframe]).value;
}

class TradingDays {
  readonly #days: Periods;
  #date = NaN;
  #through = -Infinity;

  constructor(calendar: CalendarName, timeframe: TimeframeName | undefined) {
    const length = timeframe === undefined ? 0 : parseTimeframe(timeframe).ms;
    this.#days = new Periods(parseTimeframe('1d'), length, calendarOf(calendar));
  }

  next(time: number): number {
    if (time < this.#through) return this.#date;
    const day = this.#days.of(time);
    if (day === undefined) return NaN;
    this.#date = day.start;
    this.#through = day.through;
    return this.#date;
  }
}

export const TRADING_DAYS: IndicatorKind<
  [calendar: CalendarName, timeframe: TimeframeName | undefined],
  TradingDays,
  'value'
> = {
  name: 'tradingDays',
  lines: ['value'],
  scale: 'none',
  start: (calendar, timeframe) => new TradingDays(calendar, timeframe),
  warmUp: () => ofWindow(1),
  fill(machine, [time], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(time[at]!);
  },
};
