/** When the daemon retries a failed renewal. The first attempt is at `renewalMoment` of the lease. */

import { HOUR, MINUTE } from '../src/base/durations.ts';
import { backoffMs } from '../src/base/backoff.ts';

const SECOND = 1000;

/** Minimum wait; the first wait is at most twice as long. */
const SHORTEST_MS = 30 * SECOND;
const LONGEST_MS = HOUR;

/** Maximum share that is added at random to `Retry-After`. */
const RETRY_AFTER_SPREAD = 0.1;

/** A denial may be withdrawn, such as after a mistaken revocation or an extended contract. */
const DENIED_MS = 6 * HOUR;

export const MOST_REQUESTS_PER_HOUR = 30;

export interface Failure {
  /** Consecutive failures, including this one: from 1. */
  readonly count: number;
  /** Whether the server refused the request, so that an early retry cannot help. */
  readonly denied: boolean;
  readonly retryAfterSeconds?: number | undefined;
}

/**
 * Returns how many milliseconds to wait: `backoffMs` with the limits of renewals.
 *
 * @param leftMs time until the lease expires; 0 or less for an expired or missing lease.
 * @param chance from 0 to 1, evenly distributed.
 */
export function retryDelayMs(failure: Failure, leftMs: number, chance: number): number {
  const { count, denied, retryAfterSeconds = 0 } = failure;
  if (denied) return Math.round(DENIED_MS * (0.75 + chance / 2));
  const bounds = { shortestMs: SHORTEST_MS, longestMs: longestMs(leftMs) };
  const wait = backoffMs(count, bounds, chance);
  // The random part keeps machines with the same Retry-After from returning all at once.
  const asked = Math.min(retryAfterSeconds * SECOND, LONGEST_MS / (1 + RETRY_AFTER_SPREAD));
  return Math.round(Math.max(wait, asked * (1 + chance * RETRY_AFTER_SPREAD)));
}

/** The less time is left, the sooner the daemon must notice that the server is back. */
function longestMs(leftMs: number): number {
  if (leftMs <= 0) return 30 * MINUTE;
  return Math.min(LONGEST_MS, Math.max(5 * MINUTE, leftMs / 8));
}

/**
 * Returns the earliest time for the next request under the hourly limit.
 *
 * @param sent times of the requests of the last hour, ms since the epoch, in any order. Times after
 * `now` are from before the clock was set back, and do not count.
 */
export function earliestRequest(sent: readonly number[], now: number): number {
  const past = sent.filter((at) => at <= now).sort((a, b) => a - b);
  const first = past.at(-MOST_REQUESTS_PER_HOUR);
  return first === undefined ? Number.NEGATIVE_INFINITY : first + HOUR;
}
