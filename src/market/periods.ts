import { DAY } from '../base/durations.ts';
import type { Timeframe } from './timeframe.ts';
import type { TradingCalendar } from './trading-calendar.ts';

/** 1970-01-01 was a Thursday; weeks begin on the Monday before. */
const FIRST_MONDAY = -3 * DAY;

/** Returns the UTC bucket that contains an instant; weeks begin on Monday. */
export function bucketOf(time: number, { name, ms }: Timeframe): { start: number; end: number } {
  if (name === '1mo') {
    const date = new Date(time);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return { start: Date.UTC(year, month, 1), end: Date.UTC(year, month + 1, 1) };
  }
  const origin = name === '1w' ? FIRST_MONDAY : 0;
  const start = Math.floor((time - origin) / ms) * ms + origin;
  return { start, end: start + ms };
}

/** Maximum number of sessions in a bar of the longer timeframes. */
const SESSIONS_EACH: Readonly<Record<string, number>> = { '1w': 5, '1mo': 23 };

/** A stretch of time whose bars form one longer bar. */
export interface Period {
  /** Time of the longer bar, ms. */
  readonly start: number;
  /** Instant from which the longer bar is complete, ms. */
  readonly end: number;
  /** Latest end of a bar, ms. The last bar of a session may be longer than the rest of it. */
  readonly until: number;
  /** Instant up to which all bars belong to the period, ms: the end of a session within it. */
  readonly through: number;
}

/**
 * Divides time into the periods of a timeframe: UTC buckets, or with a calendar its sessions. Then
 * days, weeks and months consist of whole sessions, and have the times of their UTC buckets, as in
 * daily data. Shorter periods are counted from the open of a session; the last one ends with it.
 */
export class Periods {
  readonly timeframe: Timeframe;
  /** Length of the bars to divide, ms; 0 if it is unknown. */
  readonly length: number;
  readonly #calendar: TradingCalendar | undefined;

  constructor(timeframe: Timeframe, length: number, calendar?: TradingCalendar) {
    this.timeframe = timeframe;
    this.length = length;
    this.#calendar = calendar;
  }

  /** Number of bars in a period with the longest sessions. */
  get barsEach(): number {
    const { name, ms } = this.timeframe;
    const length = this.length || ms;
    if (this.#calendar === undefined) return Math.ceil(ms / length);
    const session = Math.ceil(Math.min(ms, this.#calendar.longestSession) / length);
    return session * (SESSIONS_EACH[name] ?? 1);
  }

  /** The instant from which the longer bar of a period is complete, ms. @param start of the period */
  endOf(start: number): number {
    const { timeframe } = this;
    const calendar = this.#calendar;
    if (calendar !== undefined && timeframe.ms < DAY) return this.of(start)!.end;
    const { end } = bucketOf(start, timeframe);
    return calendar === undefined ? end : calendar.lastCloseBefore(end);
  }

  /**
   * The period of a bar that opens at `time`; undefined if no part of it is in a session.
   *
   * @throws ServiceError `invalid_data` for a time that the calendar does not cover.
   */
  of(time: number): Period | undefined {
    const { timeframe } = this;
    const calendar = this.#calendar;
    if (calendar === undefined) {
      const { start, end } = bucketOf(time, timeframe);
      return { start, end, until: end, through: end };
    }
    const { date, open, close } = calendar.sessionAt(time);
    // A bar of unknown length is the only one of its period.
    if (time + (this.length || timeframe.ms) <= open) return undefined;
    if (timeframe.ms >= DAY) {
      const { start, end: endDate } = bucketOf(date, timeframe);
      return {
        start,
        end: calendar.lastCloseBefore(endDate),
        until: Infinity,
        through: close,
      };
    }
    const start = open + Math.floor(Math.max(0, time - open) / timeframe.ms) * timeframe.ms;
    const end = Math.min(start + timeframe.ms, close);
    return { start, end, until: end === close ? Infinity : end, through: end };
  }
}
