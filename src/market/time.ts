import { ServiceError } from '../base/errors.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Instants outside these years are taken for misread ones: no market has such a history. */
const EARLIEST = Date.UTC(1800, 0, 1);
const LATEST = Date.UTC(2200, 0, 1);

/** `2020-04-17` at midnight UTC, else `2020-04-17T14:30:00Z`, with milliseconds where there are any. */
export function formatTime(ms: number): string {
  const text = new Date(ms).toISOString();
  return text.endsWith('T00:00:00.000Z') ? text.slice(0, 10) : text.replace('.000Z', 'Z');
}

/** Instants `from ≤ t < to` in milliseconds since the epoch; infinite where a side is open. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/**
 * The window between two ISO 8601 dates or date-times, both included; a bare date as `to` includes
 * that whole day. Without an offset the text is UTC. Throws `invalid_data`.
 */
export function parseWindow(from: string | undefined, to: string | undefined): Window {
  const window = {
    from: from === undefined ? -Infinity : parseInstant('from', from).ms,
    to: to === undefined ? Infinity : endOf(parseInstant('to', to)),
  };
  if (window.from >= window.to) {
    throw new ServiceError('invalid_data', `from ${from} lies after to ${to}`, {
      remedy: 'Swap the two, or leave one out.',
    });
  }
  return window;
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
  // Date.parse lets 30 February through as 1 March.
  const isReal = !Number.isNaN(day) && new Date(day).toISOString().startsWith(date!);
  const ms = isReal && clock !== undefined ? Date.parse(`${date}T${clock}${offset}`) : day;
  if (!isReal || Number.isNaN(ms)) {
    throw new ServiceError('invalid_data', `${name} ${JSON.stringify(text)} is not a date`, {
      remedy: `Write ${name} as 2020-04-17 or 2020-04-17T14:30:00Z.`,
    });
  }
  return { ms, isDate: clock === undefined };
}

/** Milliseconds in one unit of a number that counts the time since 1970, coarsest unit first. */
const UNITS = [1e3, 1, 1e-3, 1e-6] as const;

/** The finest unit in which a number reaches 1973 (below zero: 1966), else seconds; -1 for NaN. */
function unitOf(value: number): number {
  const size = Math.abs(value);
  return size >= 1e17 ? 3 : size >= 1e14 ? 2 : size >= 1e11 ? 1 : size >= 0 ? 0 : -1;
}

/**
 * Turns numeric times into milliseconds since the epoch, in place: seconds, milliseconds,
 * microseconds or nanoseconds, whichever fits most of the column, or ISO 8601 basic dates such as
 * 20200417. A value that does not fit the column's unit becomes NaN, so that a file which changes
 * its unit half-way is refused instead of read as 1970; that also refuses times of 1966 to 1973
 * counted in a unit finer than seconds.
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
 * Whether every number lies so near to 1970 in any unit, 1966 to 1973 even in seconds, that it
 * hardly counts time from there: the days of a spreadsheet (43831), years, months as 202001, rows.
 */
export function areNearEpoch(column: Float64Array): boolean {
  const isNear = (value: number): boolean =>
    !(Math.abs(value) >= 1e8) && basicDate(value) === undefined;
  return column.every(isNear) && column.some((value) => !Number.isNaN(value));
}

/** 20200417 → that day, 20200431 → NaN; `undefined` for a number that cannot be meant as a date. */
function basicDate(value: number): number | undefined {
  if (value < 1800_01_01 || value > 2199_12_31 || !Number.isInteger(value)) return undefined;
  const [year, month, day] = [Math.floor(value / 1e4), Math.floor(value / 100) % 100, value % 100];
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : NaN;
}

/** Replaces instants no market history can hold by NaN, in place. */
export function rejectImplausible(time: Float64Array): void {
  for (let index = 0; index < time.length; index++) {
    const value = time[index]!;
    if (!(value >= EARLIEST && value < LATEST)) time[index] = NaN;
  }
}
