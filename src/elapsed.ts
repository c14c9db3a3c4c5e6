import { uptime } from 'node:os';

/**
 * A point in time on three clocks. `performance.now()` stands still while the machine sleeps (on Linux
 * it is CLOCK_MONOTONIC), the machine's uptime does not, and the calendar may be set by anyone.
 * A permission, a claim or a price that must not outlive its time is measured with `msSince`.
 */
export interface Moment {
  /** Milliseconds, each from an origin of its own. */
  readonly process: number;
  readonly machine: number;
  readonly calendar: number;
}

/** The calendar and the clock of the process differ by less than this unless the machine has slept. */
const AGREE_MS = 50;

export function thisMoment(): Moment {
  return { process: performance.now(), machine: 1000 * uptime(), calendar: Date.now() };
}

/** The longest time, in ms, that can have passed: that of the clock which has advanced the most. */
export function msSince(moment: Moment): number {
  const process = performance.now() - moment.process;
  const calendar = Date.now() - moment.calendar;
  // To read the uptime takes a hundred times as long as to read these two.
  if (Math.abs(calendar - process) < AGREE_MS) return Math.max(process, calendar);
  return Math.max(process, calendar, 1000 * uptime() - moment.machine);
}
