import { uptime } from 'node:os';

/**
 * A point in time on three clocks. `performance.now()` stops while the machine sleeps (on Linux it
 * is CLOCK_MONOTONIC), the machine's uptime does not, and the wall clock can be changed. A
 * permission, a claim or a price that must not outlive its time is measured with `msSince`.
 */
export interface Moment {
  /** Milliseconds, each from its own origin. */
  readonly process: number;
  readonly machine: number;
  readonly calendar: number;
}

/**
 * The wall clock and `performance.now()` advance equally up to this difference unless the machine
 * has slept, ms.
 */
const AGREE_MS = 50;

export function thisMoment(): Moment {
  return { process: performance.now(), machine: 1000 * uptime(), calendar: Date.now() };
}

/** Upper bound of the elapsed time, ms: the largest advance of the three clocks. */
export function msSince(moment: Moment): number {
  const process = performance.now() - moment.process;
  const calendar = Date.now() - moment.calendar;
  // Reading the uptime is a hundred times slower than reading these two.
  if (Math.abs(calendar - process) < AGREE_MS) return Math.max(process, calendar);
  return Math.max(process, calendar, 1000 * uptime() - moment.machine);
}
