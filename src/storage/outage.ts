import pg from 'pg';
import { retry } from '../base/backoff.ts';
import { ServiceError } from '../base/errors.ts';
import { OutcomeUnknown } from './storage-errors.ts';
import { notifyFailure } from './storage-load.ts';

/** No attempt begins after this time, which is longer than a restart of PostgreSQL. */
const RETRY_FOR_MS = 5_000;
const RETRY = { shortestMs: 50, longestMs: 500 };

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
const PASSING_STATES: ReadonlySet<string> = new Set([
  '53300', // too_many_connections
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '25P03', // idle_in_transaction_session_timeout
  '0A000', // The schema has changed under a cached plan; the next attempt creates a new plan.
]);
const CONNECTION_EXCEPTION = '08';

/** Whether the database was unreachable or busy, so that the same request may soon succeed. */
function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ServiceError) {
    return error.code === 'storage_unavailable' && isOutage(error.cause);
  }
  const { code } = error as { readonly code?: unknown };
  if (error instanceof pg.DatabaseError) {
    return PASSING_STATES.has(String(code)) || String(code).startsWith(CONNECTION_EXCEPTION);
  }
  if (typeof code === 'string' && code.startsWith('SQLITE_')) {
    return /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code);
  }
  return isConnectionFault(error);
}

/** Whether `error` comes from the connection to PostgreSQL, which may have broken at any point. */
export function isConnectionFault(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof ServiceError) return false;
  if (error instanceof pg.DatabaseError) return isOutage(error);
  if (error instanceof TypeError || error instanceof RangeError) return false;
  const { code } = error as { readonly code?: unknown };
  if (typeof code === 'string') return 'syscall' in error || error instanceof AggregateError;
  return CONNECTION_MESSAGE.test(error.message);
}

/** node-postgres and pg-pool identify these errors only by their messages. */
const CONNECTION_MESSAGE =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Query read timeout)/;

/**
 * Repeats `attempt` with growing pauses while it fails because of an outage, for at most five seconds.
 * An attempt may run more than once, so it must have no effect when it fails.
 * @throws the error of the last attempt; OutcomeUnknown without another attempt.
 */
export async function retryDuringOutage<T>(attempt: () => Promise<T>): Promise<T> {
  const since = performance.now();
  return await retry(attempt, {
    ...RETRY,
    shouldRetry(error, _count, waitMs) {
      const isPassing = isOutage(error);
      if (isPassing || error instanceof OutcomeUnknown) notifyFailure();
      return (
        isPassing &&
        !(error instanceof OutcomeUnknown) &&
        performance.now() + waitMs - since < RETRY_FOR_MS
      );
    },
  });
}
