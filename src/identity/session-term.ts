import { ServiceError } from '../base/errors.ts';
import type { AdministratorsTable, Db, SessionsTable } from '../storage/tables.ts';
import { administratorDisabled } from './administrator-disabled.ts';

export const IDLE_MS = 2 * 3_600_000;
export const SESSION_MS = 12 * 3_600_000;

/** @throws ServiceError `not_authenticated` with the reason `session_ended` or `administrator_disabled`. */
export function checkSessionTerm(
  now: number,
  row:
    | (Pick<SessionsTable, 'seen_at' | 'expires_at'> & Pick<AdministratorsTable, 'disabled_at'>)
    | undefined,
): void {
  if (row === undefined) throw sessionEnded('the login session has ended');
  if (row.disabled_at !== null) throw administratorDisabled();
  if (Math.min(row.expires_at, row.seen_at + IDLE_MS) <= now) {
    throw sessionEnded('the login session has expired');
  }
}

function sessionEnded(message: string): ServiceError {
  return new ServiceError('not_authenticated', message, {
    reason: 'session_ended',
    remedy: 'Sign in again at /console/sign-in.',
  });
}

/**
 * Checks again within a transaction that the session has not ended.
 * @throws ServiceError as `checkSessionTerm`
 */
export async function checkSession(tx: Db, now: number, sessionId: string): Promise<void> {
  const row = await tx
    .selectFrom('sessions')
    .innerJoin('administrators', 'administrators.administrator_id', 'sessions.administrator_id')
    .select(['sessions.seen_at', 'sessions.expires_at', 'administrators.disabled_at'])
    .where('session_id', '=', sessionId)
    .executeTakeFirst();
  checkSessionTerm(now, row);
}
