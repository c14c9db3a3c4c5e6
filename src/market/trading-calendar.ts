import { DAY, HOUR, MINUTE } from '../base/durations.ts';
import { ServiceError } from '../base/errors.ts';
import { EXCHANGES, type Exchange, type ExchangeCode } from './exchanges.ts';

/** Names of calendars: around the clock, or the sessions of an exchange by its code (ISO 10383). */
export const CALENDAR_NAMES = ['24/7', ...(Object.keys(EXCHANGES) as ExchangeCode[])] as const;
export type CalendarName = (typeof CALENDAR_NAMES)[number];

/** A trading session. All instants are milliseconds since the epoch. */
export interface Session {
  /** Midnight UTC of its date at the exchange. */
  readonly date: number;
  readonly open: number;
  readonly close: number;
}

/** The sessions of an exchange, with its holidays, half days and daylight saving time. */
export class TradingCalendar {
  readonly name: ExchangeCode;
  readonly #sessions: readonly Session[];

  constructor(name: ExchangeCode) {
    this.name = name;
    this.#sessions = sessionsOf(EXCHANGES[name]);
  }

  /**
   * The session at an instant, or else the next one. Times of daily data, midnight UTC of a date, are
   * in the session of this date or before it.
   *
   * @throws ServiceError `invalid_data` for a time that the calendar does not cover.
   */
  sessionAt(time: number): Session {
    const { [this.#count(({ close }) => close <= time)]: session } = this.#sessions;
    if (session === undefined || time < this.start) throw this.#uncovered(time);
    return session;
  }

  /** IANA name. */
  get timeZone(): string {
    return EXCHANGES[this.name].timeZone;
  }

  /** Midnight UTC of the date of the first session. */
  get start(): number {
    return this.#sessions[0]!.date;
  }

  /** Length of the longest session, ms. */
  get longestSession(): number {
    return this.#sessions.reduce((most, { open, close }) => Math.max(most, close - open), 0);
  }

  /** The close of the last session whose date is before `date`; −∞ without one. */
  lastCloseBefore(date: number): number {
    return this.#sessions[this.#count((session) => session.date < date) - 1]?.close ?? -Infinity;
  }

  /** Number of sessions that satisfy `holds`, which must be true for all sessions before one that does. */
  #count(holds: (session: Session) => boolean): number {
    let [from, to] = [0, this.#sessions.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (holds(this.#sessions[middle]!)) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #uncovered(time: number): ServiceError {
    const [from, to] = [this.#sessions[0]!, this.#sessions.at(-1)!].map(({ date }) =>
      new Date(date).getUTCFullYear(),
    );
    const date = new Date(time).toISOString().slice(0, 10);
    return new ServiceError(
      'invalid_data',
      `the calendar ${this.name} covers ${from} to ${to}, not ${date}`,
      { remedy: 'Choose a window within these years, or remove universe.calendar.' },
    );
  }
}

const calendars = new Map<ExchangeCode, TradingCalendar>();

/** Returns the calendar of an exchange; undefined for 24/7. */
export function calendarOf(name: CalendarName | undefined): TradingCalendar | undefined {
  if (name === undefined || name === '24/7') return undefined;
  const known = calendars.get(name);
  if (known !== undefined) return known;
  const calendar = new TradingCalendar(name);
  calendars.set(name, calendar);
  return calendar;
}

/** The sessions of all years of the table, oldest first. */
function sessionsOf({ timeZone, hours, closures }: Exchange): readonly Session[] {
  const utcOffset = utcOffsets(timeZone);
  return closures
    .trim()
    .split(/\s*\n\s*/)
    .flatMap((line) => {
      const [year, ...days] = line.split(' ');
      return weekdaysOf(Number(year)).flatMap((date) => {
        const iso = new Date(date).toISOString();
        const day = iso.slice(5, 7) + iso.slice(8, 10);
        if (days.includes(day)) return [];
        const { open, close, early } = hours.findLast(({ since }) => since <= iso)!;
        const midnight = date - utcOffset(date);
        const closing = days.includes(`${day}*`) ? early : close;
        return [{ date, open: midnight + timeOfDay(open), close: midnight + timeOfDay(closing) }];
      });
    });
}

/** Midnights UTC of the Mondays to Fridays of a year. */
function weekdaysOf(year: number): number[] {
  const first = Date.UTC(year, 0, 1);
  const count = (Date.UTC(year + 1, 0, 1) - first) / DAY;
  const days = Array.from({ length: count }, (_, day) => first + day * DAY);
  return days.filter((day) => new Date(day).getUTCDay() % 6 !== 0);
}

/** Milliseconds since midnight of a time such as 09:30. */
function timeOfDay(text: string): number {
  const [hours, minutes] = text.split(':');
  return Number(hours) * HOUR + Number(minutes) * MINUTE;
}

/**
 * Returns a function of the offset from UTC, ms, that a time zone has on a date. Dates ascend. Time
 * zones of exchanges change their offset on Sundays only, so one lookup serves a week.
 */
function utcOffsets(timeZone: string): (date: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  let sunday = -Infinity;
  let offset = 0;
  return (date) => {
    if (date < sunday) return offset;
    sunday = date + (7 - new Date(date).getUTCDay()) * DAY;
    const [, sign, size] = /GMT(?:([+-])(\d\d:\d\d))?$/.exec(format.format(date + 12 * HOUR))!;
    offset = size === undefined ? 0 : Number(`${sign}1`) * timeOfDay(size);
    return offset;
  };
}
