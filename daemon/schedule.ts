/**
 * When the daemon asks for a renewal again after it did not get one. When it asks at first is
 * `renewalMoment` of the lease. Pure: time and chance come in as numbers.
 */

import { backoffMs } from '../src/base/backoff.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** No wait is shorter, and the first is at most twice as long. */
const SHORTEST_MS = 30 * SECOND;
const LONGEST_MS = HOUR;

/** Up to this share is added to what `Retry-After` says. */
const RETRY_AFTER_SPREAD = 0.1;

/** A denial is seldom taken back, but it is: a revoke by mistake, a contract extended. */
const DENIED_MS = 6 * HOUR;

export const MOST_REQUESTS_PER_HOUR = 30;

/** How the last request ended, if not with a lease. */
export interface Failure {
  /** How many in a row have failed, this one included: from 1. */
  readonly count: number;
  /** The server understood and refused, so that asking again soon changes nothing. */
  readonly denied: boolean;
  /** What it said in `Retry-After`. */
  readonly retryAfterSeconds?: number | undefined;
}

/**
 * How many milliseconds to wait: see `backoffMs`, and what is particular to renewals below.
 *
 * @param leftMs until the lease expires; 0 or less when it has, or there is none.
 * @param chance from 0 to 1, evenly distributed.
 */
export function retryDelayMs(failure: Failure, leftMs: number, chance: number): number {
  const { count, denied, retryAfterSeconds = 0 } = failure;
  if (denied) return Math.round(DENIED_MS * (0.75 + chance / 2));
  const bounds = { shortestMs: SHORTEST_MS, longestMs: longestMs(leftMs) };
  const wait = backoffMs(count, bounds, chance);
  // All of a fleet may have been told the same, also what is too long.
  const asked = Math.min(retryAfterSeconds * SECOND, LONGEST_MS / (1 + RETRY_AFTER_SPREAD));
  return Math.round(Math.max(wait, asked * (1 + chance * RETRY_AFTER_SPREAD)));
}

/** The less time is left, the sooner it must notice that the server is back. */
function longestMs(leftMs: number): number {
  if (leftMs <= 0) return 30 * MINUTE;
  return Math.min(LONGEST_MS, Math.max(5 * MINUTE, leftMs / 8));
}

/**
 * When the next request may go out at the earliest, whatever else is decided.
 *
 * @param sent when the requests of the last hour were sent; ms since the epoch, in any order. Those
 * that are later than `now` were sent before the clock was set back, and do not count.
 */
export function earliestRequest(sent: readonly number[], now: number): number {
  const past = sent.filter((at) => at <= now).sort((a, b) => a - b);
  const first = past.at(-MOST_REQUESTS_PER_HOUR);
  return first === undefined ? Number.NEGATIVE_INFINITY : first + HOUR;
}
