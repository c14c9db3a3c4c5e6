import { isId, type LeaseClaims } from './claims.ts';
import { isJsonObject } from './json.ts';
import { formatTime, parseTime } from './time.ts';

export interface Boot {
  /** Identifies one start of one machine. */
  readonly boot_id: string;
  readonly uptime_seconds: number;
}

/** For how long machines have been observed running since they received a lease. */
export interface RunningTime extends Boot {
  readonly lease_id: string;
  /** The running time at `uptime_seconds` of that boot. */
  readonly seconds: number;
}

const CENTURY_SECONDS = 100 * 366 * 86_400;

/** Whether a value from a file has the form of a running time. */
export function isRunningTime(value: unknown): value is RunningTime {
  if (!isJsonObject(value)) return false;
  const isAmount = (amount: unknown): boolean =>
    typeof amount === 'number' && amount >= 0 && amount <= CENTURY_SECONDS;
  const { lease_id, seconds, boot_id, uptime_seconds } = value;
  return isId(lease_id) && isAmount(seconds) && isId(boot_id) && isAmount(uptime_seconds);
}

/**
 * Returns the running time until now. It grows with the uptime, which users cannot set and which also
 * counts while the machine sleeps. Time while the machine was off, or before the files moved from
 * another machine, does not count. The result therefore never exceeds the time that really passed,
 * whatever happened to the clock.
 *
 * @param before the last known running time, of this or another lease.
 * @param boot the current boot id and uptime.
 */
export function runningTime(
  before: RunningTime | undefined,
  lease_id: string,
  boot: Boot,
): RunningTime {
  if (before?.lease_id !== lease_id) return { lease_id, seconds: 0, ...boot };
  const more =
    boot.boot_id === before.boot_id ? Math.max(0, boot.uptime_seconds - before.uptime_seconds) : 0;
  return { lease_id, seconds: before.seconds + more, ...boot };
}

/** Returns a time that has certainly passed, for `leaseStatus`: issue of the lease plus running time. */
export function knownTime(
  { lease_id, issued_at }: Pick<LeaseClaims, 'lease_id' | 'issued_at'>,
  running: RunningTime | undefined,
): string {
  if (running?.lease_id !== lease_id) return issued_at;
  return formatTime(parseTime(issued_at)! + running.seconds * 1000);
}
