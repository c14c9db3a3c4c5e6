import { retry } from '../base/backoff.ts';
import { ServiceError } from '../base/errors.ts';
import type { Context } from './verb.ts';

const RETRY = { shortestMs: 1000, longestMs: 10_000 };
/** Longest time without an answer. */
const MOST_SILENCE_MS = 10 * 60_000;

/**
 * Repeats a request for up to ten minutes while its receiver does not answer.
 *
 * @param to name of the receiver, for the message that the command waits
 */
export function persist<T>(
  { signal, message }: Pick<Context, 'signal' | 'message'>,
  to: string,
  request: () => Promise<T>,
): Promise<T> {
  let failedAt: number | undefined;
  return retry(request, {
    ...RETRY,
    signal,
    shouldRetry(error) {
      if (signal.aborted || !(error instanceof ServiceError) || !error.retryable) return false;
      if (failedAt === undefined) message(`waiting for ${to}: ${error.message}`);
      failedAt ??= performance.now();
      return performance.now() - failedAt < MOST_SILENCE_MS;
    },
  });
}
