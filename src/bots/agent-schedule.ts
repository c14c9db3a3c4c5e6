/** Tools that the agents of a spec may use, and the syntax of their schedules. */

/** In display order. */
export const AGENT_TOOLS = [
  'list_bots',
  'read_bot',
  'read_versions',
  'diff_versions',
  'list_runs',
  'read_results',
  'read_trades',
  'read_events',
  'read_state',
  'read_market_data',
  'compare_results',
  'run_backtest',
  'run_sweep',
  'read_sweep',
  'propose_version',
  'search_knowledge',
] as const;

/** Syntax of `every` in a schedule. `isEvery` also checks the maximum of 31 days. */
export const EVERY = /^(?:(?![1-4]m$)([1-9]\d{0,4})([mhd])|day at ([01]\d|2[0-3]):([0-5]\d))$/;

export const EVERY_EXPECTED =
  'must be an interval from 5m to 31d such as 6h, or a daily time in UTC such as day at 06:30';

const UNITS = { m: MINUTE, h: HOUR, d: DAY } as const;
const SHORTEST_MS = 5 * MINUTE;
const LONGEST_MS = 31 * DAY;

/** Milliseconds: an interval since the last run, or a time of day after midnight UTC. */
type Recurrence = { readonly interval: number } | { readonly timeOfDay: number };

function recurrenceOf(every: string): Recurrence | undefined {
  const [, count, unit, hours, minutes] = EVERY.exec(every) ?? [];
  if (hours !== undefined) {
    return { timeOfDay: Number(hours) * UNITS.h + Number(minutes) * UNITS.m };
  }
  const interval = Number(count) * UNITS[unit as keyof typeof UNITS];
  return interval >= SHORTEST_MS && interval <= LONGEST_MS ? { interval } : undefined;
}

export function isEvery(every: string): boolean {
  return recurrenceOf(every) !== undefined;
}

/**
 * Returns the first time after `now` at which a schedule is due. Missed runs are skipped. Times are
 * milliseconds since the Unix epoch.
 *
 * @param every in the syntax of a spec.
 * @param last a time at which the schedule was due, or its start.
 */
export function nextDue(every: string, last: number, now: number): number {
  const recurrence = recurrenceOf(every);
  if (recurrence === undefined) throw new RangeError(`invalid schedule: ${every}`);
  const from = 'interval' in recurrence ? last : recurrence.timeOfDay;
  const interval = 'interval' in recurrence ? recurrence.interval : DAY;
  return from + (Math.floor((now - from) / interval) + 1) * interval;
}
import { DAY, HOUR, MINUTE } from '../base/durations.ts';
