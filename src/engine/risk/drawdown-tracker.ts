import { DAY } from '../../base/durations.ts';
import { firstAtLeast } from '../../base/sorted.ts';
import type { TradingCalendar } from '../../market/trading-calendar.ts';
import type { EquityCurve } from '../equity-curve.ts';
import type { RiskState } from './risk-state.ts';

/** A day whose loss is limited. All times are milliseconds since the epoch. */
interface TradingDay {
  /** Midnight UTC of its date. */
  readonly date: number;
  readonly start: number;
  readonly end: number;
}

const BEFORE_ALL: TradingDay = { date: -Infinity, start: -Infinity, end: -Infinity };

/** Equity from which losses are measured. It reads the curve only when an order needs it. */
export class DrawdownTracker {
  /** Highest equity at a close. */
  peak: number;
  /** Equity at the last close of the previous trading day. */
  dayStart: number;
  readonly #initial: number;
  readonly #calendar: TradingCalendar | undefined;
  #day = BEFORE_ALL;
  #followed = 0;

  /**
   * @param calendar undefined for UTC days.
   * @param carried state of the account that this one continues.
   */
  constructor(equity: number, calendar: TradingCalendar | undefined, carried?: RiskState) {
    this.#initial = equity;
    this.#calendar = calendar;
    this.peak = Math.max(equity, carried?.peak_equity ?? equity);
    this.dayStart = carried?.day_start_equity ?? equity;
    if (typeof carried?.day === 'string') {
      this.#day = dayAt(Date.parse(carried.day), calendar);
    }
  }

  get state(): Omit<RiskState, 'executions'> {
    const day = this.#day === BEFORE_ALL ? null : dateOf(this.#day.date);
    return { peak_equity: this.peak, day_start_equity: this.dayStart, day };
  }

  /** Reads the recorded equity; the day is that of `step`. */
  follow({ times, values, peak, recorded }: EquityCurve, step: number): void {
    if (times[step]! >= this.#day.end) this.#startDay(times, values, step);
    if (peak > this.peak) this.peak = peak;
    this.#followed = recorded;
  }

  #startDay(times: Float64Array, equity: Float64Array, step: number): void {
    this.#day = dayAt(times[step]!, this.#calendar);
    const first = firstAtLeast(times.subarray(0, step + 1), this.#day.start, this.#followed);
    this.dayStart = first > 0 ? equity[first - 1]! : this.#initial;
  }
}

/** The UTC day or, with a calendar, the time from the close of a session to the close of the next. */
function dayAt(time: number, calendar: TradingCalendar | undefined): TradingDay {
  if (calendar === undefined) {
    const date = Math.floor(time / DAY) * DAY;
    return { date, start: date, end: date + DAY };
  }
  const { date, close } = calendar.sessionAt(time);
  return { date, start: calendar.lastCloseBefore(date), end: close };
}

function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
