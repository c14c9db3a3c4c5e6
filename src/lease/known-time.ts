import { isId, type LeaseClaims } from './claims.ts';
import { isJsonObject } from './json.ts';
import { formatTime, parseTime } from './time.ts';

/** Since when a machine runs. */
export interface Boot {
  /** Of this start of this machine, and of no other. */
  readonly boot_id: string;
  /** For how long it has run since. */
  readonly uptime_seconds: number;
}

/** For how long machines have been seen running since they got a lease. */
export interface RunningTime extends Boot {
  readonly lease_id: string;
  /** What it was at `uptime_seconds` of that boot. */
  readonly seconds: number;
}

/** No machine runs for longer. */
const CENTURY_SECONDS = 100 * 366 * 86_400;

/** Whether what was read from a file is one that can be. */
export function isRunningTime(value: unknown): value is RunningTime {
  if (!isJsonObject(value)) return false;
  const isAmount = (amount: unknown): boolean =>
    typeof amount === 'number' && amount >= 0 && amount <= CENTURY_SECONDS;
  const { lease_id, seconds, boot_id, uptime_seconds } = value;
  return isId(lease_id) && isAmount(seconds) && isId(boot_id) && isAmount(uptime_seconds);
}

/**
 * The running time as it is now. Uptime is what nobody can set: it counts from the start of the
 * machine, also while it sleeps. Only what was seen of one boot from a moment on counts: nothing of
 * the time switched off, and nothing of another machine to which the files have moved. So what comes
 * out is never more than the time that has really passed, whatever was done to the clock.
 *
 * @param before as it was, of whatever lease; undefined when nothing is known.
 * @param boot of the machine, as it is now.
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

/** The latest time that has passed for certain since the lease was issued, for `leaseStatus`. */
export function knownTime(
  { lease_id, issued_at }: Pick<LeaseClaims, 'lease_id' | 'issued_at'>,
  running: RunningTime | undefined,
): string {
  if (running?.lease_id !== lease_id) return issued_at;
  return formatTime(parseTime(issued_at)! + running.seconds * 1000);
}
