import type { Bars } from './bars.ts';
import { DAY } from '../base/durations.ts';
import { parseWindow } from './bar-time.ts';
import type { Timeframe } from './timeframe.ts';

/** A run of missing bars. Gaps are never filled. */
interface Gap {
  /** The bars on either side, milliseconds since the epoch. */
  readonly after: number;
  readonly before: number;
  /** Bars missing between them, according to the usual hours of the market. */
  readonly missing: number;
}

export interface GapReport {
  /** The first `LISTED` gaps in order of time. `count` and `missing` cover all gaps. */
  readonly gaps: readonly Gap[];
  readonly count: number;
  readonly missing: number;
  /** Holes of up to `HOLIDAYS` whole trading days, which are probably holidays. */
  readonly shortHoles: number;
}

const LISTED = 1000;

/** Exchanges are rarely closed for more trading days than this, so longer holes count as gaps. */
const HOLIDAYS = 4;

/**
 * Finds missing bars by comparing bars in order of time with the usual hours of their market (UTC),
 * which are derived from the bars:
 *
 * - A weekday is a trading day if it has bars at least half as often as the busiest weekday.
 * - A time of day is traded if more than half of the reference days have a bar then. Reference days
 *   are the days with bars of the same weekday up to two weeks before and after, which follows
 *   daylight saving time. If there are fewer than three, all days with bars in these weeks count.
 *
 * Nights, lunch breaks and weekends are therefore not gaps. Up to four whole trading days without a
 * bar are a short hole, except in a market that trades on all seven weekdays and has no holidays.
 */
export function findGaps(bars: Bars, timeframe: Timeframe): GapReport {
  const { length, time } = bars;
  const holeBetween = holesLike(bars, timeframe);
  const gaps: Gap[] = [];
  let count = 0;
  let total = 0;
  let shortHoles = 0;
  for (let index = 1; index < length; index++) {
    if (time[index]! - time[index - 1]! <= timeframe.ms) continue;
    const { missing, isHoliday } = holeBetween(time[index - 1]!, time[index]!);
    if (isHoliday) shortHoles++;
    if (missing === 0) continue;
    count++;
    total += missing;
    if (count <= LISTED) gaps.push({ after: time[index - 1]!, before: time[index]!, missing });
  }
  return { gaps, count, missing: total, shortHoles };
}

/** Bars missing between an edge of the window and the bar nearest to it. */
export interface UncoveredEdge {
  readonly edge: 'from' | 'to';
  /** The start or end of the window as the user gave it; see `parseWindow`. */
  readonly asked: string;
  /** Time of the nearest bar, ms since the epoch. */
  readonly nearest: number;
  readonly missing: number;
}

/**
 * Finds the edges of the window that the bars do not reach, by the rules of `findGaps`: bars that begin
 * after the holiday cover a window from 1 January.
 *
 * @param bars at least one, all inside the window
 */
export function findUncoveredEdges(
  bars: Bars,
  timeframe: Timeframe,
  window: { readonly from?: string | undefined; readonly to?: string | undefined },
): UncoveredEdge[] {
  const { from, to } = parseWindow(window.from, window.to);
  const first = bars.time[0]!;
  const last = bars.time[bars.length - 1]!;
  const count = timeframe.ms > DAY ? missingPeriods(timeframe) : missingHours(bars, timeframe);
  const edges: UncoveredEdge[] = [];
  if (window.from !== undefined && first > from) {
    const missing = count.before(from, first);
    edges.push({ edge: 'from', asked: window.from, nearest: first, missing });
  }
  if (window.to !== undefined && to > last + timeframe.ms) {
    const missing = count.after(last, to);
    edges.push({ edge: 'to', asked: window.to, nearest: last, missing });
  }
  return edges.filter(({ missing }) => missing > 0);
}

interface MissingAtEdges {
  readonly before: (from: number, first: number) => number;
  readonly after: (last: number, to: number) => number;
}

function missingHours(bars: Bars, timeframe: Timeframe): MissingAtEdges {
  const holeBetween = holeInHours(bars, timeframe);
  return {
    before: (from, first) => holeBetween(from - 1, first).missing,
    after: (last, to) => holeBetween(last, to + timeframe.ms - 1).missing,
  };
}

/** Counts whole periods only: a week or month can be stamped with its first day or its last. */
function missingPeriods({ name, ms }: Timeframe): MissingAtEdges {
  const longest = name === '1mo' ? 31 * DAY : ms;
  return {
    before: (from, first) =>
      name === '1mo' ? monthOf(first) - monthOf(from - 1) - 1 : Math.floor((first - from) / ms),
    after: (last, to) => Math.floor((to - last - 1) / longest),
  };
}

/** Judges the hole between two consecutive bars, given their times. */
export type HoleBetween = (
  after: number,
  before: number,
) => { readonly missing: number; readonly isHoliday: boolean };

/**
 * Derives the usual hours from these bars, as `findGaps` does, and returns a function that judges holes
 * by them. The bars on either side of a hole need not be among these bars.
 *
 * @param bars at least one
 */
export function holesLike(bars: Bars, timeframe: Timeframe): HoleBetween {
  return timeframe.ms > DAY ? holeInPeriods(timeframe) : holeInHours(bars, timeframe);
}

/** Expects every bar: for weeks, months and markets that never close. */
export function holeInPeriods({ name, ms }: Timeframe): HoleBetween {
  return (after, before) => {
    const steps =
      name === '1mo' ? monthOf(before) - monthOf(after) : Math.round((before - after) / ms);
    return { missing: steps - 1, isHoliday: false };
  };
}

/** Months since year 0, UTC. */
function monthOf(instant: number): number {
  const date = new Date(instant);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** Counts the missing bars of a market that never closes. */
export function findMissing({ length, time }: Bars, timeframe: Timeframe): number {
  const holeBetween = holeInPeriods(timeframe);
  let missing = 0;
  for (let index = 1; index < length; index++) {
    missing += holeBetween(time[index - 1]!, time[index]!).missing;
  }
  return missing;
}

function holeInHours(bars: Bars, { ms }: Timeframe): HoleBetween {
  const days = tradedDays(bars, ms);
  const trades = tradingWeekdays(bars.time);
  const isAlwaysOpen = trades.every(Boolean);
  const barsPerDay = Math.round(bars.length / days.traded.reduce((sum, flag) => sum + flag, 0));
  return (after, before) => {
    const from = days.slotOf(after);
    const to = days.slotOf(before);
    if (from.day === to.day) {
      return { missing: usualSlots(days, from.day, from.slot + 1, to.slot), isHoliday: false };
    }
    let closed = 0;
    // Days before the first bar are negative.
    for (let day = from.day + 1; day < to.day; day++) if (trades[((day % 7) + 7) % 7]) closed++;
    const isHoliday = closed > 0 && closed <= HOLIDAYS && !isAlwaysOpen;
    const missing =
      usualSlots(days, from.day, from.slot + 1, days.slots) +
      usualSlots(days, to.day, 0, to.slot) +
      (isHoliday ? 0 : closed * barsPerDay);
    return { missing, isHoliday };
  };
}

/** The UTC days and times of day with bars. Days are counted from the day of the first bar. */
interface TradedDays {
  /** Number of bars in a full day. */
  readonly slots: number;
  /** 1 for each day with a bar. */
  readonly traded: Uint8Array;
  /** 1 for each slot with a bar, at `day * slots + slot`. */
  readonly filled: Uint8Array;
  readonly slotOf: (time: number) => { readonly day: number; readonly slot: number };
}

function tradedDays({ length, time }: Bars, ms: number): TradedDays {
  const firstDay = Math.floor(time[0]! / DAY);
  const slots = DAY / ms;
  const slotOf = (instant: number): { day: number; slot: number } => {
    const day = Math.floor(instant / DAY);
    return { day: day - firstDay, slot: Math.floor((instant - day * DAY) / ms) };
  };
  const count = slotOf(time[length - 1]!).day + 1;
  const traded = new Uint8Array(count);
  const filled = new Uint8Array(count * slots);
  for (let index = 0; index < length; index++) {
    const day = Math.floor(time[index]! / DAY);
    const slot = Math.floor((time[index]! - day * DAY) / ms);
    traded[day - firstDay] = 1;
    filled[(day - firstDay) * slots + slot] = 1;
  }
  return { slots, traded, filled, slotOf };
}

/**
 * Whether each weekday (UTC) has bars at least half as often as the busiest. Index 0 is the weekday of
 * the first bar.
 *
 * @param time milliseconds since the epoch, ascending
 */
export function tradingWeekdays(time: Float64Array): boolean[] {
  const counts = Array.from({ length: 7 }, () => 0);
  const firstDay = Math.floor(time[0]! / DAY);
  let nextDay = -Infinity;
  for (let index = 0; index < time.length; index++) {
    if (time[index]! < nextDay) continue;
    const day = Math.floor(time[index]! / DAY);
    nextDay = (day + 1) * DAY;
    counts[(day - firstDay) % 7]!++;
  }
  const busiest = Math.max(1, ...counts);
  return counts.map((count) => 2 * count >= busiest);
}

/** Counts the slots `from ≤ slot < to` of a day that usually have a bar. */
function usualSlots(
  { slots, traded, filled }: TradedDays,
  day: number,
  from: number,
  to: number,
): number {
  const around = (step: number): number[] => {
    const days: number[] = [];
    for (let other = day - 14; other <= day + 14; other += step)
      if (traded[other]) days.push(other);
    return days;
  };
  const sameWeekday = around(7);
  const references = sameWeekday.length < 3 ? around(1) : sameWeekday;
  // With so few days, a night looks like a hole: count only slots between two bars of one day.
  if (references.length < 3) return from > 0 && to < slots ? to - from : 0;
  let usual = 0;
  for (let slot = from; slot < to; slot++) {
    let bars = 0;
    for (const other of references) bars += filled[other * slots + slot]!;
    if (2 * bars > references.length) usual++;
  }
  return usual;
}
