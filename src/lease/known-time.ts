import type { LeaseClaims } from './claims.ts';
import { formatTime, parseTime } from './time.ts';

/** For how long a machine has been seen running since it got a lease. */
export interface RunningTime {
  readonly lease_id: string;
  readonly seconds: number;
  /** What the machine's uptime was when `seconds` was right. */
  readonly uptime_seconds: number;
}

/**
 * The running time as it is now. Uptime is what nobody can set: it counts from the start of the
 * machine, also while it sleeps. Off-time counts for nothing, so that what comes out is never more
 * than the time that has really passed, whatever was done to the clock.
 *
 * @param before as it was, of whatever lease; undefined when nothing is known.
 * @param uptime of the machine, in seconds.
 */
export function runningTime(
  before: RunningTime | undefined,
  lease_id: string,
  uptime: number,
): RunningTime {
  if (before?.lease_id !== lease_id) return { lease_id, seconds: 0, uptime_seconds: uptime };
  const { seconds, uptime_seconds } = before;
  // After a restart of the machine the uptime begins anew.
  const more = uptime >= uptime_seconds ? uptime - uptime_seconds : uptime;
  return { lease_id, seconds: seconds + more, uptime_seconds: uptime };
}

/** The latest time that has passed for certain since the lease was issued, for `leaseStatus`. */
export function knownTime(
  { lease_id, issued_at }: Pick<LeaseClaims, 'lease_id' | 'issued_at'>,
  running: RunningTime | undefined,
): string {
  if (running?.lease_id !== lease_id) return issued_at;
  return formatTime(parseTime(issued_at)! + running.seconds * 1000);
}
