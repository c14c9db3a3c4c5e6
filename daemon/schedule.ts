/**
 * When the daemon asks for a renewal again after it did not get one. When it asks at first is
 * `renewalMoment` of the lease. Pure: time and chance come in as numbers.
 */

const SECOND = 1000;
const HOUR = 3_600 * SECOND;

/** The first wait is at most this long, and no wait is shorter. */
const SHORTEST_MS = 30 * SECOND;
const LONGEST_MS = HOUR;

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
 * How many milliseconds to wait. Full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/)
 * up to an hour, so that a fleet that met the same outage does not come back at the same moment.
 *
 * @param chance from 0 to 1, evenly distributed.
 */
export function retryDelayMs(failure: Failure, chance: number): number {
  const { count, denied, retryAfterSeconds } = failure;
  if (denied) return Math.round(DENIED_MS * (0.75 + chance / 2));
  const most = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** Math.min(count, 20));
  const asked = (retryAfterSeconds ?? 0) * SECOND;
  return Math.max(SHORTEST_MS, Math.round(chance * most), Math.min(LONGEST_MS, asked));
}

/**
 * When the next request may go out at the earliest, whatever else is decided.
 *
 * @param sent when the requests of the last hour were sent, the oldest first; ms since the epoch.
 */
export function earliestRequest(sent: readonly number[]): number {
  const first = sent.at(-MOST_REQUESTS_PER_HOUR);
  return first === undefined ? Number.NEGATIVE_INFINITY : first + HOUR;
}
