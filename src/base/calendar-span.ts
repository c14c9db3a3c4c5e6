import { DAY } from './durations.ts';
import { ServiceError } from './errors.ts';

/** A length of time in calendar units. */
export interface CalendarSpan {
  readonly months: number;
  readonly days: number;
  /** As written: `3y`. */
  readonly text: string;
}

/** Months and days of one unit. */
const UNITS: Readonly<Record<string, readonly [months: number, days: number]>> = {
  y: [12, 0],
  mo: [1, 0],
  w: [0, 7],
  d: [0, 1],
};

/**
 * Parses `3y`, `6mo`, `2w` or `5d`.
 *
 * @throws ServiceError `usage`
 */
export function parseSpan(text: string): CalendarSpan {
  const [, digits, unit] = /^(\d{1,5})(y|mo|w|d)$/.exec(text) ?? [];
  const count = Number(digits);
  if (unit === undefined || count === 0) {
    throw new ServiceError('usage', `${JSON.stringify(text)} is not a length of time`, {
      remedy: 'Write a number and a unit: 3y, 6mo, 2w or 5d.',
    });
  }
  const [months, days] = UNITS[unit]!;
  return { months: count * months, days: count * days, text };
}

/**
 * Adds a span `times` times to an instant, in UTC; a negative `times` subtracts it. A day that the month
 * does not have becomes the last one of the month: 31 January + 1mo is 28 or 29 February.
 *
 * @param instant ms since the epoch
 */
export function addSpan(instant: number, { months, days }: CalendarSpan, times = 1): number {
  const date = new Date(instant);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + times * months);
  const lastDay = new Date(date);
  lastDay.setUTCMonth(lastDay.getUTCMonth() + 1, 0);
  date.setUTCDate(Math.min(day, lastDay.getUTCDate()));
  return date.getTime() + times * days * DAY;
}
