import { DAY } from '../base/durations.ts';
import { ServiceError } from '../base/errors.ts';
import type { Db } from '../storage/tables.ts';
import { hashSecret } from './secrets.ts';

/** Failures within the window after which a network is blocked. */
export const MOST_FAILURES = 5;
/**
 * Failures within the window after which all networks are blocked from which the administrator has
 * not logged in before. Codes allow fewer, because a guess succeeds with probability 3 in 1,000,000.
 */
const MOST_FAILURES_ANYWHERE = { login: 20, code: 10 } as const;
export const WINDOW_MINUTES = 15;
const WINDOW_MS = WINDOW_MINUTES * 60_000;

/** Number of most recently used networks per administrator that keep their own limit. */
export const MOST_KNOWN_NETWORKS = 10;
const KNOWN_DAYS = 90;
const KNOWN_MS = KNOWN_DAYS * DAY;

/**
 * Key under which failures are counted. Logins are counted by name, so that an unknown name is
 * treated like any other. Codes are counted by administrator, after a valid password or token.
 */
export type Subject = `login:${string}` | `code:${string}`;

/** The name is hashed because some people type their password there. */
export function loginSubject(name: string): Subject {
  return `login:${hashSecret(name)}`;
}

export function codeSubject(administratorId: string): Subject {
  return `code:${administratorId}`;
}

export interface Origin {
  /** An IPv4 address, or the /64 of an IPv6 address; empty if it is not known. */
  readonly network: string;
  /** Administrator whose known networks count; empty for an unknown name. */
  readonly administrator_id: string;
}

/**
 * Counts failures by subject and network, so that an attacker cannot lock an administrator out of
 * another network. Against guesses from many networks, the failures of all networks together limit
 * the networks from which the administrator has not logged in within 90 days. Refused tries do not
 * count, so a limit ends by itself.
 *
 * @returns `rate_limited`; `undefined` if a try is allowed.
 */
export async function tryLimit(
  db: Db,
  now: number,
  subject: Subject,
  origin: Origin,
): Promise<ServiceError | undefined> {
  const here = await failureAt(db, now, MOST_FAILURES, subject, origin.network);
  if (here !== undefined)
    return rateLimited(now, here, 'from this address', MOST_FAILURES, 'address');
  const most = MOST_FAILURES_ANYWHERE[subject.startsWith('login:') ? 'login' : 'code'];
  const anywhere = await failureAt(db, now, most, subject);
  if (anywhere === undefined) return undefined;
  if (await isKnownNetwork(db, now, origin)) return undefined;
  return rateLimited(now, anywhere, 'from several addresses', most, 'all_addresses');
}

async function failureAt(
  db: Db,
  now: number,
  n: number,
  subject: Subject,
  network?: string,
): Promise<number | undefined> {
  const row = await db
    .selectFrom('failed_tries')
    .select('failed_at')
    .where('subject', '=', subject)
    .where('failed_at', '>', now - WINDOW_MS)
    .$if(network !== undefined, (query) => query.where('network', '=', network!))
    .orderBy('failed_at', 'desc')
    .limit(1)
    .offset(n - 1)
    .executeTakeFirst();
  return row?.failed_at;
}

function rateLimited(
  now: number,
  failedAt: number,
  from: string,
  most: number,
  reason: string,
): ServiceError {
  const retryAfterSeconds = Math.ceil((failedAt + WINDOW_MS - now) / 1000);
  const elsewhere =
    reason === 'all_addresses'
      ? `, use a passkey, log in from an address that you used in the last ${KNOWN_DAYS} days`
      : '';
  return new ServiceError(
    'rate_limited',
    `${most} attempts ${from} failed within ${WINDOW_MINUTES} minutes`,
    {
      reason,
      remedy:
        `Try again in ${retryAfterSeconds} s${elsewhere}, or lift the limit on the server's ` +
        'machine with `service-local identity administrators reset`.',
      retryAfterSeconds,
    },
  );
}

export async function countFailures(
  tx: Db,
  now: number,
  subjects: readonly Subject[],
  network: string,
): Promise<void> {
  await tx
    .deleteFrom('failed_tries')
    .where('failed_at', '<=', now - WINDOW_MS)
    .execute();
  await tx
    .insertInto('failed_tries')
    .values(subjects.map((subject) => ({ subject, network, failed_at: now })))
    .execute();
}

/** Deletes the failures from one network, or from all networks. */
export async function forgetFailures(
  tx: Db,
  subjects: readonly Subject[],
  network?: string,
): Promise<void> {
  await tx
    .deleteFrom('failed_tries')
    .where('subject', 'in', subjects)
    .$if(network !== undefined, (query) => query.where('network', '=', network!))
    .execute();
}

/** Whether the administrator logged in from the network within 90 days. */
export async function isKnownNetwork(
  db: Db,
  now: number,
  { administrator_id, network }: Origin,
): Promise<boolean> {
  const row = await db
    .selectFrom('known_networks')
    .select('seen_at')
    .where('administrator_id', '=', administrator_id)
    .where('network', '=', network)
    .where('seen_at', '>', now - KNOWN_MS)
    .executeTakeFirst();
  return row !== undefined;
}

/** Records a login. Keeps the most recently used networks only. */
export async function rememberNetwork(
  tx: Db,
  now: number,
  administratorId: string,
  network: string,
): Promise<void> {
  await tx
    .insertInto('known_networks')
    .values({ administrator_id: administratorId, network, seen_at: now })
    .onConflict((conflict) =>
      conflict.columns(['administrator_id', 'network']).doUpdateSet({ seen_at: now }),
    )
    .execute();
  await tx
    .deleteFrom('known_networks')
    .where('administrator_id', '=', administratorId)
    .where('network', 'not in', (eb) =>
      eb
        .selectFrom('known_networks')
        .select('network')
        .where('administrator_id', '=', administratorId)
        .orderBy('seen_at', 'desc')
        .limit(MOST_KNOWN_NETWORKS),
    )
    .execute();
}

export async function purgeKnownNetworks(tx: Db, now: number): Promise<void> {
  await tx
    .deleteFrom('known_networks')
    .where('seen_at', '<=', now - KNOWN_MS)
    .execute();
}
