import { Periods } from '../../market/periods.ts';
import { parseTimeframe } from '../../market/timeframe.ts';
import { calendarOf, type CalendarName } from '../../market/trading-calendar.ts';

/** A stretch of history: entries of a series, and whole trading days before them. */
export interface Stretch {
  readonly entries: number;
  readonly days: number;
}

/** The history that a series needs. */
export interface WarmUp {
  /** The first entry that is a number is the last of this stretch. */
  readonly ready: Stretch;
  /**
   * Entries before this stretch have less than 1e-9 of the influence that they had on the first
   * value; infinite if no such bound is known.
   */
  readonly settled: Stretch;
}

const NEGLIGIBLE = 1e-9;

/** Warm-up of values that depend on no more than the last `entries` entries. */
export function ofWindow(entries: number): WarmUp {
  const stretch = { entries, days: 0 };
  return { ready: stretch, settled: stretch };
}

/** Warm-up of an average that is ready after `entries` entries, and gives later ones this weight. */
export function ofAverage(entries: number, weight: number): WarmUp {
  const fading = Math.ceil(Math.log(NEGLIGIBLE) / Math.log(1 - weight));
  return {
    ready: { entries, days: 0 },
    settled: { entries: entries + fading, days: 0 },
  };
}

/** Warm-up of values that depend on all entries since the first, such as a balance. */
export function ofAll(entries: number): WarmUp {
  return { ready: { entries, days: 0 }, settled: { entries: Infinity, days: 0 } };
}

/** Warm-up of an indicator of an indicator: each waits for the one before it. */
export function inTurn(...parts: readonly WarmUp[]): WarmUp {
  const sum = (stretches: readonly Stretch[]): Stretch =>
    stretches.reduce((a, b) => ({ entries: a.entries + b.entries - 1, days: a.days + b.days }));
  return {
    ready: sum(parts.map(({ ready }) => ready)),
    settled: sum(parts.map(({ settled }) => settled)),
  };
}

/** Warm-up of values that need all parts, which begin together. */
export function together(...parts: readonly WarmUp[]): WarmUp {
  const longest = (stretches: readonly Stretch[]): Stretch => ({
    entries: Math.max(...stretches.map(({ entries }) => entries)),
    days: Math.max(...stretches.map(({ days }) => days)),
  });
  return {
    ready: longest(parts.map(({ ready }) => ready)),
    settled: longest(parts.map(({ settled }) => settled)),
  };
}

/**
 * Number of bars of this length, ms, that cover a stretch. A bar of a day or more counts as a day. With
 * a calendar, days have the bars of its longest session.
 */
export function barsOf({ entries, days }: Stretch, barMs: number, calendar?: CalendarName): number {
  return entries + days * new Periods(parseTimeframe('1d'), barMs, calendarOf(calendar)).barsEach;
}
