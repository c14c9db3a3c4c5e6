import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../base/errors.ts';
import { SCOPES } from '../base/scopes.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import type { Db, SessionsTable } from '../storage/tables.ts';
import { appendAudit } from './audit.ts';
import type { IdentityStore } from './context.ts';
import { login, type Credentials } from './login.ts';
import { hashSecret, newSecret } from './secrets.ts';
import { checkSessionTerm, IDLE_MS, SESSION_MS } from './session-term.ts';
import { ownerSeenBy, type Caller } from './tokens.ts';

export interface Browser {
  readonly user_agent: string;
  /** Null if unknown. */
  readonly address: string | null;
  /** Secret of its current cookie, whose session ends. */
  readonly secret?: string | undefined;
}

export interface Session {
  readonly caller: Caller & { readonly session_id: string };
  readonly name: string;
  /** Required in addition to the cookie for each change. */
  readonly csrf_token: string;
}

/** Times are milliseconds since the Unix epoch. */
export interface SessionState extends Pick<
  SessionsTable,
  | 'session_id'
  | 'administrator_id'
  | 'signed_in_with'
  | 'user_agent'
  | 'address'
  | 'created_at'
  | 'seen_at'
> {
  readonly administrator: string;
  /** Time at which the session ends if it is not used again. */
  readonly expires_at: number;
}

const LONGEST_USER_AGENT = 300;
/** Minimum time between two updates of `seen_at`. */
const SEEN_EVERY_MS = 60_000;

/**
 * Signs in with password and code.
 * @returns the secret for the cookie, which is stored only as a hash.
 * @throws ServiceError as `login`
 */
export async function signIn(
  identity: IdentityStore,
  credentials: Credentials,
  browser: Browser,
): Promise<string> {
  return login(identity, credentials, (tx, now, administratorId) =>
    openSession(tx, now, administratorId, 'password', browser),
  );
}

/** Opens a session for an administrator who was authenticated. @returns the secret for the cookie. */
export async function openSession(
  tx: Db,
  now: number,
  administratorId: string,
  signed_in_with: SessionsTable['signed_in_with'],
  { user_agent, address, secret: before }: Browser,
): Promise<string> {
  const session_id = uuidv7({ msecs: now });
  const secret = newSecret();
  await appendAudit(tx, now, {
    actor: `administrator:${administratorId}`,
    action: 'admin.identity.session.create',
    target: `session:${session_id}`,
    details: { signed_in_with, address },
  });
  if (before !== undefined) {
    await tx.deleteFrom('sessions').where('secret_hash', '=', hashSecret(before)).execute();
  }
  await tx
    .insertInto('sessions')
    .values({
      session_id,
      administrator_id: administratorId,
      secret_hash: hashSecret(secret),
      csrf_token: newSecret(),
      signed_in_with,
      user_agent: user_agent.slice(0, LONGEST_USER_AGENT).toWellFormed(),
      address,
      created_at: now,
      seen_at: now,
      expires_at: now + SESSION_MS,
    })
    .execute();
  return secret;
}

/**
 * Login sessions have all scopes, because administrators can create tokens with any scope.
 * @throws ServiceError as `checkSessionTerm`
 */
export async function authenticateSession(
  { storage, clock }: IdentityStore,
  secret: string,
): Promise<Session> {
  const now = clock();
  const [row] = await selectSession(storage.read, { secret_hash: hashSecret(secret) });
  checkSessionTerm(now, row);
  const { session_id, administrator_id, csrf_token, name, seen_at } = row!;
  if (seen_at <= now - SEEN_EVERY_MS) {
    // Urgent, so that the kill switch works however many writes are waiting.
    await storage.write(
      (tx) =>
        tx
          .updateTable('sessions')
          .set({ seen_at: now })
          .where('session_id', '=', session_id)
          .where('seen_at', '<', now)
          .execute(),
      { urgent: true },
    );
  }
  return {
    caller: { administrator_id, session_id, scopes: new Set(SCOPES) },
    name,
    csrf_token,
  };
}

const selectSession = prepareQuery((db, { secret_hash }: { readonly secret_hash: string }) =>
  db
    .selectFrom('sessions')
    .innerJoin('administrators', 'administrators.administrator_id', 'sessions.administrator_id')
    .select([
      'sessions.session_id',
      'sessions.administrator_id',
      'sessions.csrf_token',
      'sessions.seen_at',
      'sessions.expires_at',
      'administrators.name',
      'administrators.disabled_at',
    ])
    .where('sessions.secret_hash', '=', secret_hash),
);

/** Replaces the secret of a session. @returns the new secret. */
export async function rotateSession(
  { storage }: IdentityStore,
  sessionId: string,
): Promise<string> {
  const secret = newSecret();
  await storage.write((tx) =>
    tx
      .updateTable('sessions')
      .set({ secret_hash: hashSecret(secret) })
      .where('session_id', '=', sessionId)
      .execute(),
  );
  return secret;
}

/** Lists current sessions, oldest first: all for the scope `admin`, otherwise the caller's own. */
export async function listSessions(
  { storage, clock }: IdentityStore,
  caller: Caller,
  {
    administrator_id,
    ...request
  }: PageRequest & { readonly administrator_id?: string | undefined },
): Promise<Page<SessionState>> {
  const owner = ownerSeenBy(caller);
  let query = selectSessions(storage.read, clock());
  for (const one of [owner, administrator_id]) {
    if (one !== undefined) query = query.where('sessions.administrator_id', '=', one);
  }
  const list = ['sessions', owner, administrator_id] as const;
  const page = await readRowsPage(list, request, query, 'session_id');
  return { ...page, items: page.items.map(stateOf) };
}

/**
 * Ends a session at once.
 * @throws ServiceError `not_found`, also for another owner's session without the scope `admin`.
 */
export async function endSession(
  { storage, clock }: IdentityStore,
  caller: Caller,
  sessionId: string,
): Promise<SessionState> {
  return storage.write(async (tx) => {
    const now = clock();
    const owner = ownerSeenBy(caller);
    const row = await selectSessions(tx, now)
      .where('session_id', '=', sessionId)
      .executeTakeFirst();
    if (row === undefined || (owner !== undefined && row.administrator_id !== owner)) {
      throw new ServiceError('not_found', `there is no session ${sessionId} that you may end`, {
        remedy: 'See `service-local identity sessions list`.',
      });
    }
    await end(tx, now, caller, [row]);
    return stateOf(row);
  });
}

/** Ends all sessions of the caller's administrator, including the caller's own. @returns their count. */
export async function endSessions(
  { storage, clock }: IdentityStore,
  caller: Caller,
): Promise<number> {
  return storage.write(async (tx) => {
    const now = clock();
    const rows = await selectSessions(tx, now)
      .where('sessions.administrator_id', '=', caller.administrator_id)
      .execute();
    await end(tx, now, caller, rows);
    return rows.length;
  });
}

async function end(
  tx: Db,
  now: number,
  caller: Caller,
  sessions: readonly Pick<SessionsTable, 'session_id' | 'administrator_id'>[],
): Promise<void> {
  for (const { session_id, administrator_id } of sessions) {
    await appendAudit(tx, now, {
      actor: `administrator:${caller.administrator_id}`,
      action: 'admin.identity.session.end',
      target: `session:${session_id}`,
      details: { administrator_id },
    });
    await tx.deleteFrom('sessions').where('session_id', '=', session_id).execute();
  }
}

function selectSessions(db: Db, now: number) {
  return db
    .selectFrom('sessions')
    .innerJoin('administrators', 'administrators.administrator_id', 'sessions.administrator_id')
    .select([
      'session_id',
      'sessions.administrator_id',
      'administrators.name as administrator',
      'signed_in_with',
      'user_agent',
      'address',
      'sessions.created_at',
      'seen_at',
      'expires_at',
    ])
    .where('expires_at', '>', now)
    .where('seen_at', '>', now - IDLE_MS);
}

function stateOf(row: SessionState): SessionState {
  return { ...row, expires_at: Math.min(row.expires_at, row.seen_at + IDLE_MS) };
}

export async function purgeSessions(tx: Db, now: number): Promise<void> {
  await tx
    .deleteFrom('sessions')
    .where((eb) => eb.or([eb('expires_at', '<=', now), eb('seen_at', '<=', now - IDLE_MS)]))
    .execute();
}
