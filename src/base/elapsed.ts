import { uptime } from 'node:os';

/**
 * A point in time on three clocks, in milliseconds, each from its own origin. `performance.now()`
 * stops while the machine sleeps (on Linux it is CLOCK_MONOTONIC), the uptime of the machine does
 * not, and the wall clock can be changed. Use `msSince` for permissions, claims and prices that must
 * expire in time.
 */
export interface Moment {
  readonly process: number;
  readonly machine: number;
  readonly calendar: number;
}

/** A larger difference between wall clock and `performance.now()` means that the machine slept. */
const AGREE_MS = 50;

export function thisMoment(): Moment {
  return { process: performance.now(), machine: 1000 * uptime(), calendar: Date.now() };
}

/** Upper bound of the elapsed time, ms: the largest advance of the three clocks. */
export function msSince(moment: Moment): number {
  const process = performance.now() - moment.process;
  const calendar = Date.now() - moment.calendar;
  // Reading the uptime is a hundred times slower than reading the other two clocks.
  if (Math.abs(calendar - process) < AGREE_MS) return Math.max(process, calendar);
  return Math.max(process, calendar, 1000 * uptime() - moment.machine);
}
