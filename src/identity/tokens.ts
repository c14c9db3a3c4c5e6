import { timingSafeEqual } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../base/errors.ts';
import { formatTime } from '../lease/time.ts';
import { remedyWithout, SCOPES, type Scope } from '../base/scopes.ts';
import { TOKEN_MAX_SECONDS, TOKEN_MIN_SECONDS } from '../base/token-lifetime.ts';
import { prepareSharedRead } from '../storage/share-query.ts';
import type { AdministratorsTable, ApiTokensTable, Db } from '../storage/tables.ts';
import { administratorDisabled } from './administrator-disabled.ts';
import { appendAudit, type Actor } from './audit.ts';
import { refuseInvalid, secondsProblems, textProblems } from './request-problems.ts';
import type { IdentityStore } from './context.ts';
import { login, type Credentials } from './login.ts';
import {
  callerNarrowing,
  narrowingOf,
  narrowingProblems,
  refuseUnknown,
  type Narrowed,
  type Narrowing,
} from './narrowing.ts';
import { readRowsPage, type Page, type PageRequest } from '../storage/paging.ts';
import { hashSecret, newSecret } from './secrets.ts';
import { checkSession } from './session-term.ts';

/** Stored as the expiry of a token that does not expire. */
const NEVER = Date.UTC(9999, 11, 31, 23, 59, 59);

/** An administrator, authenticated by an API token or a login session, or represented by an agent. */
export type Caller = {
  readonly administrator_id: string;
  readonly scopes: ReadonlySet<Scope>;
} & Narrowed &
  Credential;

type Credential =
  | { readonly token_id: string }
  | { readonly session_id: string }
  | { readonly agent: ScheduledAgent };

/** An agent of a bot that runs on a schedule. */
export interface ScheduledAgent {
  readonly bot_id: string;
  readonly role: string;
}

/** Details for the audit log: the credential of the caller. */
export function callerDetails(caller: Caller): Credential {
  if ('token_id' in caller) return { token_id: caller.token_id };
  return 'agent' in caller ? { agent: caller.agent } : { session_id: caller.session_id };
}

export interface TokenTerms {
  /** Purpose of the token, shown in lists. */
  readonly label: string;
  readonly scopes: readonly Scope[];
  /** 60 seconds to 365 days; null for a token that does not expire. */
  readonly expires_in_seconds: number | null;
  readonly narrowing?: Narrowing | undefined;
}

/** A token without its secret. Times are milliseconds since the Unix epoch. */
export interface TokenState {
  readonly token_id: string;
  readonly administrator_id: string;
  readonly administrator: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  readonly created_at: number;
  /** Null for a token that does not expire. */
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly narrowing: Narrowing;
}

export interface NewToken extends TokenState {
  /** Value for `Authorization: Bearer …`; its secret part is stored only as a hash. */
  readonly token: string;
}

/**
 * Logs in and creates a token.
 * @throws ServiceError `invalid_request`, and as `login`.
 */
export async function createToken(
  identity: IdentityStore,
  credentials: Credentials,
  terms: TokenTerms,
): Promise<NewToken> {
  checkTokenTerms(terms);
  return login(identity, credentials, (tx, now, administratorId) =>
    addToken(tx, now, `administrator:${administratorId}`, administratorId, terms),
  );
}

export function checkTokenTerms(terms: TokenTerms): void {
  const { label, scopes, expires_in_seconds, narrowing = NOT_NARROWED } = terms;
  const areScopes = scopes.length > 0 && scopes.every((scope) => SCOPES.includes(scope));
  const message = `a token has one or more of the scopes ${SCOPES.join(', ')}`;
  refuseInvalid([
    ...textProblems('/label', label),
    ...(areScopes ? [] : [{ code: 'invalid_value', pointer: '/scopes', message }]),
    ...secondsProblems(
      '/expires_in_seconds',
      expires_in_seconds ?? TOKEN_MAX_SECONDS,
      TOKEN_MIN_SECONDS,
      TOKEN_MAX_SECONDS,
    ),
    ...narrowingProblems(scopes, narrowing),
  ]);
}

const NOT_NARROWED: Narrowing = { deployment_ids: null, customer_id: null, max_ttl_seconds: null };

/**
 * Creates a token on terms that have been checked.
 * @throws ServiceError `not_found` for an unknown installation or customer in its narrowing
 */
export async function addToken(
  tx: Db,
  now: number,
  actor: Actor,
  administratorId: string,
  terms: TokenTerms,
): Promise<NewToken> {
  const token_id = uuidv7({ msecs: now });
  const secret = newSecret();
  const { label, narrowing = NOT_NARROWED } = terms;
  await refuseUnknown(tx, narrowing);
  const scopes = SCOPES.filter((scope) => terms.scopes.includes(scope));
  const seconds = terms.expires_in_seconds;
  const expires_at = seconds === null ? NEVER : now + seconds * 1000;
  await appendAudit(tx, now, {
    actor,
    action: 'admin.identity.token.create',
    target: `token:${token_id}`,
    details: {
      administrator_id: administratorId,
      label,
      scopes,
      expires_at: seconds === null ? null : formatTime(expires_at),
      ...(callerNarrowing(rowOf(narrowing)) && { narrowing }),
    },
  });
  await tx
    .insertInto('api_tokens')
    .values({
      token_id,
      administrator_id: administratorId,
      label,
      secret_hash: hashSecret(secret),
      scopes: JSON.stringify(scopes),
      created_at: now,
      expires_at,
      revoked_at: null,
      ...rowOf(narrowing),
    })
    .execute();
  const state = await getToken(tx, token_id);
  return { ...state, token: `slt_${token_id.replaceAll('-', '')}_${secret}` };
}

/** The groups are the parts of the id, and the secret. */
const FORM = /^slt_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})_([\w-]{43})$/;

/**
 * @throws ServiceError `not_authenticated` with the reason `unknown_token`, `expired_token`,
 * `revoked_token` or `administrator_disabled`.
 */
export async function authenticateToken(db: Db, now: number, bearer: string): Promise<Caller> {
  const [, ...parts] = FORM.exec(bearer) ?? [];
  const secret = parts.pop() ?? '';
  const row = await selectToken(db, parts.join('-'));
  const isSecret =
    row && timingSafeEqual(Buffer.from(row.secret_hash), Buffer.from(hashSecret(secret)));
  if (!isSecret) throw invalidToken('unknown_token', 'the token is unknown');
  checkTerm(now, row);
  const { administrator_id, token_id } = row;
  const narrowing = callerNarrowing(row);
  return {
    administrator_id,
    token_id,
    scopes: new Set(JSON.parse(row.scopes) as Scope[]),
    ...(narrowing && { narrowing }),
  };
}

/**
 * Checks the credential again within a transaction, because a request may have waited for it.
 * @throws ServiceError as `authenticateToken` or `checkSession`, or with the reason `agent_stopped`.
 */
export async function checkCaller(tx: Db, now: number, caller: Caller): Promise<void> {
  if ('session_id' in caller) return checkSession(tx, now, caller.session_id);
  if ('agent' in caller) return checkAgent(tx, caller.administrator_id, caller.agent);
  const { token_id } = caller;
  const row = await tx
    .selectFrom('api_tokens')
    .innerJoin('administrators', 'administrators.administrator_id', 'api_tokens.administrator_id')
    .select(['api_tokens.expires_at', 'api_tokens.revoked_at', 'administrators.disabled_at'])
    .where('api_tokens.token_id', '=', token_id)
    .executeTakeFirst();
  if (row === undefined) throw invalidToken('unknown_token', 'the token is unknown');
  checkTerm(now, row);
}

/** A schedule outlives the expiry of the token that created it, but not its revocation. */
async function checkAgent(
  tx: Db,
  administrator_id: string,
  { bot_id, role }: ScheduledAgent,
): Promise<void> {
  const row = await tx
    .selectFrom('agent_schedules as agent')
    .innerJoin('administrators', 'administrators.administrator_id', 'agent.administrator_id')
    .leftJoin('api_tokens', 'api_tokens.token_id', 'agent.token_id')
    .select(['agent.next_run_at', 'administrators.disabled_at', 'api_tokens.revoked_at'])
    .where('agent.bot_id', '=', bot_id)
    .where('agent.role', '=', role)
    // Another administrator may have scheduled the agent in the meantime.
    .where('agent.administrator_id', '=', administrator_id)
    .executeTakeFirst();
  if (row === undefined || row.next_run_at === null) {
    throw invalidToken('agent_stopped', 'the schedule of the agent has been turned off');
  }
  if (row.disabled_at !== null) throw administratorDisabled();
  if (row.revoked_at !== null) throw invalidToken('revoked_token', 'the token was revoked');
}

function checkTerm(
  now: number,
  token: Pick<ApiTokensTable, 'expires_at' | 'revoked_at'> &
    Pick<AdministratorsTable, 'disabled_at'>,
): void {
  if (token.disabled_at !== null) throw administratorDisabled();
  if (token.revoked_at !== null) throw invalidToken('revoked_token', 'the token was revoked');
  if (token.expires_at <= now) throw invalidToken('expired_token', 'the token has expired');
}

const selectToken = prepareSharedRead('api_tokens.token_id', (db) =>
  db
    .selectFrom('api_tokens')
    .innerJoin('administrators', 'administrators.administrator_id', 'api_tokens.administrator_id')
    .select([
      'api_tokens.token_id',
      'api_tokens.administrator_id',
      'api_tokens.secret_hash',
      'api_tokens.scopes',
      'api_tokens.expires_at',
      'api_tokens.revoked_at',
      'api_tokens.deployment_ids',
      'api_tokens.customer_id',
      'api_tokens.max_ttl_seconds',
      'administrators.disabled_at',
    ]),
);

function invalidToken(reason: string, message: string): ServiceError {
  return new ServiceError('not_authenticated', message, {
    reason,
    remedy:
      'Log in with `service-local login`, or create a token for a script with `service-local identity tokens create`.',
  });
}

export function requireScope(caller: Caller, scope: Scope): void {
  if (caller.scopes.has(scope)) return;
  throw new ServiceError('not_allowed', `the token lacks the scope ${scope}`, {
    remedy: remedyWithout(scope, caller.scopes),
  });
}

/** Lists tokens, oldest first: all for the scope `admin`, otherwise the caller's own. */
export async function listTokens(
  db: Db,
  caller: Caller,
  request: PageRequest,
): Promise<Page<TokenState>> {
  const owner = ownerSeenBy(caller);
  let query = selectTokens(db);
  if (owner !== undefined) query = query.where('api_tokens.administrator_id', '=', owner);
  const page = await readRowsPage(['tokens', owner], request, query, 'token_id');
  return { ...page, items: page.items.map(stateOf) };
}

/** @param tokenId of an existing token. */
export async function getToken(db: Db, tokenId: string): Promise<TokenState> {
  return stateOf(await selectTokens(db).where('token_id', '=', tokenId).executeTakeFirstOrThrow());
}

/**
 * Revokes a token. Idempotent.
 * @throws ServiceError `not_found`, also for another owner's token without the scope `admin`.
 */
export async function revokeToken(
  { storage, clock }: IdentityStore,
  caller: Caller,
  tokenId: string,
): Promise<TokenState> {
  return storage.write(async (tx) => {
    const now = clock();
    const row = await selectTokens(tx).where('token_id', '=', tokenId).executeTakeFirst();
    if (row === undefined || !mayRevoke(caller, row)) {
      throw new ServiceError('not_found', `there is no token ${tokenId} that you may revoke`, {
        remedy: 'See `service-local identity tokens list`.',
      });
    }
    if (row.revoked_at !== null) return stateOf(row);
    await appendAudit(tx, now, {
      actor: `administrator:${caller.administrator_id}`,
      action: 'admin.identity.token.revoke',
      target: `token:${tokenId}`,
      details: { administrator_id: row.administrator_id, label: row.label },
    });
    await tx
      .updateTable('api_tokens')
      .set({ revoked_at: now })
      .where('token_id', '=', tokenId)
      .execute();
    return stateOf({ ...row, revoked_at: now });
  });
}

/** A narrowed token can revoke only itself. */
function mayRevoke(caller: Caller, row: Pick<TokenRow, 'token_id' | 'administrator_id'>): boolean {
  if (caller.narrowing) return 'token_id' in caller && caller.token_id === row.token_id;
  const owner = ownerSeenBy(caller);
  return owner === undefined || owner === row.administrator_id;
}

/** Returns the administrator whose sessions and tokens the caller may see; undefined for all. */
export function ownerSeenBy({ administrator_id, scopes }: Caller): string | undefined {
  return scopes.has('admin') ? undefined : administrator_id;
}

function selectTokens(db: Db) {
  return db
    .selectFrom('api_tokens')
    .innerJoin('administrators', 'administrators.administrator_id', 'api_tokens.administrator_id')
    .select([
      'token_id',
      'api_tokens.administrator_id',
      'administrators.name as administrator',
      'label',
      'scopes',
      'api_tokens.created_at',
      'expires_at',
      'revoked_at',
      'deployment_ids',
      'customer_id',
      'max_ttl_seconds',
    ]);
}

type TokenRow = Omit<ApiTokensTable, 'secret_hash'> & { readonly administrator: string };

function stateOf(row: TokenRow): TokenState {
  const { deployment_ids, customer_id, max_ttl_seconds, ...rest } = row;
  return {
    ...rest,
    scopes: JSON.parse(row.scopes) as Scope[],
    expires_at: row.expires_at >= NEVER ? null : row.expires_at,
    narrowing: narrowingOf({ deployment_ids, customer_id, max_ttl_seconds }),
  };
}

function rowOf({ deployment_ids, customer_id, max_ttl_seconds }: Narrowing) {
  const ids = deployment_ids && JSON.stringify(deployment_ids);
  return { deployment_ids: ids, customer_id, max_ttl_seconds };
}
