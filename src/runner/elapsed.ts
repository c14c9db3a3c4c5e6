import { uptime } from 'node:os';

/** A moment, by every clock there is: one stands still while the machine sleeps, another may be set. */
export interface Moment {
  readonly process: number;
  readonly machine: number;
  readonly calendar: number;
}

export function thisMoment(): Moment {
  return { process: performance.now(), machine: 1000 * uptime(), calendar: Date.now() };
}

/** How long ago it may have been, ms: by the clock that has gone furthest. */
export function msSince(moment: Moment): number {
  const now = thisMoment();
  return Math.max(
    now.process - moment.process,
    now.machine - moment.machine,
    now.calendar - moment.calendar,
  );
}
