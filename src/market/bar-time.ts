import { DAY } from '../base/durations.ts';
import { ServiceError } from '../base/errors.ts';

/** No market has data outside these years, so such instants must be misread. */
const EARLIEST = Date.UTC(1800, 0, 1);
const LATEST = Date.UTC(2200, 0, 1);

/** `2020-04-17` at midnight UTC, else `2020-04-17T14:30:00Z`, with milliseconds if not zero. */
export function formatTime(ms: number): string {
  const text = new Date(ms).toISOString();
  return text.endsWith('T00:00:00.000Z') ? text.slice(0, 10) : text.replace('.000Z', 'Z');
}

/** Instants `from ≤ t < to` in milliseconds since the epoch; an open side is infinite. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/**
 * Parses a window between two ISO 8601 dates or date-times, both inclusive. A date as `to` includes
 * that whole day. Times without an offset are UTC.
 *
 * @throws ServiceError `invalid_data`
 */
export function parseWindow(from: string | undefined, to: string | undefined): Window {
  const window = {
    from: from === undefined ? -Infinity : parseInstant('from', from).ms,
    to: to === undefined ? Infinity : endOf(parseInstant('to', to)),
  };
  if (window.from >= window.to) {
    throw new ServiceError('invalid_data', `from ${from} is after to ${to}`, {
      remedy: 'Swap the two, or omit one.',
    });
  }
  return window;
}

/** Parses the options `--from` and `--to` as `parseWindow` does. @throws ServiceError `usage` */
export function parseWindowOptions(from: string | undefined, to: string | undefined): Window {
  try {
    return parseWindow(from, to);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ServiceError('usage', error.message, {
      remedy: 'Write both as 2020-04-17 or 2020-04-17T14:30:00Z, with from before to.',
      cause: error,
    });
  }
}

interface Instant {
  readonly ms: number;
  readonly isDate: boolean;
}

const endOf = (instant: Instant): number => instant.ms + (instant.isDate ? DAY : 1);

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/;

function parseInstant(name: 'from' | 'to', text: string): Instant {
  const [, date, clock, offset = 'Z'] = ISO.exec(text) ?? [];
  const day = Date.parse(`${date}T00:00Z`);
  // Date.parse accepts 30 February as 1 March.
  const isReal = !Number.isNaN(day) && new Date(day).toISOString().startsWith(date!);
  const ms = isReal && clock !== undefined ? Date.parse(`${date}T${clock}${offset}`) : day;
  if (!isReal || Number.isNaN(ms)) {
    throw new ServiceError('invalid_data', `${name} ${JSON.stringify(text)} is not a date`, {
      remedy: `Write ${name} as 2020-04-17 or 2020-04-17T14:30:00Z.`,
    });
  }
  return { ms, isDate: clock === undefined };
}

/** Milliseconds per second, millisecond, microsecond and nanosecond. */
const UNITS = [1e3, 1, 1e-3, 1e-6] as const;

/** Index of the finest unit in which a number is not between 1966 and 1973, else 0; −1 for NaN. */
function unitOf(value: number): number {
  const size = Math.abs(value);
  return size >= 1e17 ? 3 : size >= 1e14 ? 2 : size >= 1e11 ? 1 : size >= 0 ? 0 : -1;
}

/**
 * Converts numeric times to milliseconds since the epoch, in place. Their unit is the one that fits most
 * of the column: seconds, milliseconds, microseconds, nanoseconds, or ISO 8601 basic dates such as
 * 20200417. A value that does not fit this unit becomes NaN, so that a change of unit within a file
 * is an error; so do times of 1966 to 1973 in units finer than seconds.
 */
export function numbersToTimes(column: Float64Array): void {
  const votes = UNITS.map(() => 0);
  for (let index = 0; index < column.length; index++) {
    const unit = unitOf(column[index]!);
    if (unit >= 0) votes[unit]!++;
  }
  const unit = votes.indexOf(Math.max(...votes));
  const toMs = UNITS[unit]!;
  for (let index = 0; index < column.length; index++) {
    const value = column[index]!;
    column[index] = unitOf(value) === unit ? (basicDate(value) ?? Math.round(value * toMs)) : NaN;
  }
}

/**
 * Whether every number is between 1966 and 1973 even in seconds, and so is probably not a time since
 * 1970 but a spreadsheet's day number (43831), a year, a month such as 202001 or a row number.
 */
export function areNearEpoch(column: Float64Array): boolean {
  const isNear = (value: number): boolean =>
    !(Math.abs(value) >= 1e8) && basicDate(value) === undefined;
  return column.every(isNear) && column.some((value) => !Number.isNaN(value));
}

/** 20200417 → that day, 20200431 → NaN; `undefined` for a number that does not look like a date. */
function basicDate(value: number): number | undefined {
  if (value < 1800_01_01 || value > 2199_12_31 || !Number.isInteger(value)) return undefined;
  const [year, month, day] = [Math.floor(value / 1e4), Math.floor(value / 100) % 100, value % 100];
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : NaN;
}

/** Replaces instants outside the range of market histories with NaN, in place. */
export function rejectImplausible(time: Float64Array): void {
  for (let index = 0; index < time.length; index++) {
    const value = time[index]!;
    if (!(value >= EARLIEST && value < LATEST)) time[index] = NaN;
  }
}
