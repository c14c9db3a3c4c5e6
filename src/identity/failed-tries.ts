import { ServiceError } from '../errors.ts';
import type { Db } from '../storage/tables.ts';
import { hashSecret } from './secrets.ts';

export const MOST_FAILURES = 5;
export const WINDOW_MINUTES = 15;
const WINDOW_MS = WINDOW_MINUTES * 60_000;

/**
 * What can be tried only so often. Logging in is counted by name, so that a name which nobody has
 * is treated like any other; codes are counted by administrator, and only once a password or a
 * token has been shown. So whoever knows but a name can keep its owner from logging in, for as long
 * as he goes on, but not from confirming what a token at hand is used for. Refused tries do not
 * count: the limit lifts by itself.
 */
export type Subject = `login:${string}` | `code:${string}`;

/** The name is hashed, for some people type their password there. */
export function loginSubject(name: string): Subject {
  return `login:${hashSecret(name)}`;
}

export function codeSubject(administratorId: string): Subject {
  return `code:${administratorId}`;
}

/** Why nothing may be tried for now: `rate_limited`; `undefined` when it may. */
export async function tryLimit(
  db: Db,
  now: number,
  subject: Subject,
): Promise<ServiceError | undefined> {
  const decisive = await db
    .selectFrom('failed_tries')
    .select('failed_at')
    .where('subject', '=', subject)
    .where('failed_at', '>', now - WINDOW_MS)
    .orderBy('failed_at', 'desc')
    .limit(1)
    .offset(MOST_FAILURES - 1)
    .executeTakeFirst();
  if (decisive === undefined) return undefined;
  const retryAfterSeconds = Math.ceil((decisive.failed_at + WINDOW_MS - now) / 1000);
  return new ServiceError(
    'rate_limited',
    `${MOST_FAILURES} tries have failed within ${WINDOW_MINUTES} minutes`,
    {
      remedy:
        `Try again in ${retryAfterSeconds} s, or lift the limit on the server's machine with ` +
        '`service-local identity administrators reset`.',
      retryAfterSeconds,
    },
  );
}

export async function countFailures(
  tx: Db,
  now: number,
  subjects: readonly Subject[],
): Promise<void> {
  await tx
    .deleteFrom('failed_tries')
    .where('failed_at', '<=', now - WINDOW_MS)
    .execute();
  await tx
    .insertInto('failed_tries')
    .values(subjects.map((subject) => ({ subject, failed_at: now })))
    .execute();
}

export async function forgetFailures(tx: Db, subjects: readonly Subject[]): Promise<void> {
  await tx.deleteFrom('failed_tries').where('subject', 'in', subjects).execute();
}
