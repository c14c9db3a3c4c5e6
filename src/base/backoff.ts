import { setTimeout as delay } from 'node:timers/promises';

export interface Backoff {
  /** Minimum wait; `longestMs` takes precedence where it is shorter. */
  readonly shortestMs: number;
  readonly longestMs: number;
}

/**
 * Returns the time to wait after consecutive failures, ms: random between the shortest wait and a
 * limit that doubles with each failure, so that clients do not all return at once after an outage
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 *
 * @param count consecutive failures, from 1.
 * @param chance uniformly distributed random number from 0 to 1.
 */
export function backoffMs(
  count: number,
  { shortestMs, longestMs }: Backoff,
  chance: number,
): number {
  const most = Math.min(longestMs, shortestMs * 2 ** Math.min(count, 20));
  return shortestMs + chance * (most - shortestMs);
}

export interface RetryOptions extends Backoff {
  /**
   * Whether the next attempt may succeed.
   *
   * @param count attempts so far.
   * @param waitMs time until the next attempt.
   */
  readonly shouldRetry: (error: unknown, count: number, waitMs: number) => boolean;
  /** Minimum wait that the error asks for, ms. */
  readonly requestedMs?: (error: unknown) => number;
  readonly signal?: AbortSignal | undefined;
  /** Ends a wait early when it is aborted, so that the next attempt follows at once. */
  readonly wake?: AbortSignal | undefined;
}

/**
 * Repeats `attempt` until it succeeds, waiting `backoffMs` after each failure.
 *
 * @throws the first error that `shouldRetry` rejects, or an error once `signal` is aborted.
 */
export async function retry<T>(
  attempt: () => Promise<T>,
  { shouldRetry, requestedMs, signal, wake, ...backoff }: RetryOptions,
): Promise<T> {
  for (let count = 1; ; count += 1) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      const waitMs = Math.max(backoffMs(count, backoff, Math.random()), requestedMs?.(error) ?? 0);
      if (!shouldRetry(error, count, waitMs)) throw error;
      const ends = [signal, wake].filter((end) => end !== undefined);
      await delay(waitMs, undefined, { signal: AbortSignal.any(ends) }).catch((reason: unknown) => {
        if (signal?.aborted) throw reason;
      });
    }
  }
}
