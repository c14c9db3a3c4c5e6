export interface Backoff {
  /** No wait is shorter, except for what is left of `longestMs`. */
  readonly shortestMs: number;
  readonly longestMs: number;
}

/**
 * How many milliseconds to wait after so many failures in a row: at random between the shortest wait
 * and a limit that doubles each time, so that many who met the same outage do not come back at the
 * same moment (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * @param count failures in a row, this one included: from 1.
 * @param chance from 0 to 1, evenly distributed.
 */
export function backoffMs(
  count: number,
  { shortestMs, longestMs }: Backoff,
  chance: number,
): number {
  const most = Math.min(longestMs, shortestMs * 2 ** Math.min(count, 20));
  return shortestMs + chance * (most - shortestMs);
}
