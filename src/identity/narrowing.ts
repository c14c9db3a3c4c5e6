/**
 * The limits to which an API token can be narrowed, so that a thief gains little with it: some
 * installations or one customer, and leases of limited length. Only tokens with the scope `license`
 * alone are narrowed, and the API accepts them only for operations that check the narrowing.
 */
import { sql, type RawBuilder, type SqlBool } from 'kysely';
import { ServiceError, type Problem } from '../base/errors.ts';
import { MAX_TOKEN_INSTALLATIONS, type Scope } from '../base/scopes.ts';
import { formatSeconds } from '../base/seconds.ts';
import type { ApiTokensTable, Db } from '../storage/tables.ts';
import { idProblems, problemUnless, secondsProblems } from './request-problems.ts';
import { TTL_MIN_SECONDS, type LeasePolicy } from './context.ts';
import type { InstallationTerms, RequestedTerms } from './terms.ts';

/** Null if the token is not narrowed in this respect. */
export interface Narrowing {
  readonly deployment_ids: readonly string[] | null;
  readonly customer_id: string | null;
  /** Longest TTL of a lease issued with the token. */
  readonly max_ttl_seconds: number | null;
}

/** The narrowing of a caller; absent for tokens and sessions without one. */
export interface Narrowed {
  readonly narrowing?: Narrowing | undefined;
}

const MAX_TTL_SECONDS = 4 * 365 * 86_400;

export function narrowingProblems(
  scopes: readonly Scope[],
  { deployment_ids, customer_id, max_ttl_seconds }: Narrowing,
): Problem[] {
  const isNarrowed = deployment_ids !== null || customer_id !== null || max_ttl_seconds !== null;
  if (!isNarrowed) return [];
  const count = deployment_ids?.length ?? 1;
  return [
    ...problemUnless(
      scopes.length === 1 && scopes[0] === 'license',
      '/scopes',
      'a narrowed token has the scope license and no other',
    ),
    ...problemUnless(
      deployment_ids === null || customer_id === null,
      '/customer_id',
      'name either installations or a customer',
    ),
    ...problemUnless(
      count > 0 && count <= MAX_TOKEN_INSTALLATIONS,
      '/deployment_ids',
      `name 1 to ${MAX_TOKEN_INSTALLATIONS} installations`,
    ),
    ...(deployment_ids ?? []).flatMap((id, i) => idProblems(`/deployment_ids/${i}`, id)),
    ...idProblems('/customer_id', customer_id ?? undefined),
    ...secondsProblems(
      '/max_ttl_seconds',
      max_ttl_seconds ?? TTL_MIN_SECONDS,
      TTL_MIN_SECONDS,
      MAX_TTL_SECONDS,
    ),
  ];
}

export async function refuseUnknown(
  db: Db,
  { deployment_ids, customer_id }: Narrowing,
): Promise<void> {
  for (const deployment_id of deployment_ids ?? []) {
    const row = await db
      .selectFrom('deployments')
      .select('deployment_id')
      .where('deployment_id', '=', deployment_id)
      .executeTakeFirst();
    if (row === undefined) throw unknownSubject('installation', deployment_id, 'deployments');
  }
  if (customer_id === null) return;
  const row = await db
    .selectFrom('customers')
    .select('customer_id')
    .where('customer_id', '=', customer_id)
    .executeTakeFirst();
  if (row === undefined) throw unknownSubject('customer', customer_id, 'customers');
}

function unknownSubject(noun: string, id: string, command: string): ServiceError {
  return new ServiceError('not_found', `there is no ${noun} ${id}`, {
    remedy: `See \`service-local identity ${command} list\`.`,
  });
}

type Columns = Pick<ApiTokensTable, 'deployment_ids' | 'customer_id' | 'max_ttl_seconds'>;

export function narrowingOf({ deployment_ids, customer_id, max_ttl_seconds }: Columns): Narrowing {
  const ids = deployment_ids === null ? null : (JSON.parse(deployment_ids) as string[]);
  return { deployment_ids: ids, customer_id, max_ttl_seconds };
}

/** Undefined for a token that is not narrowed. */
export function callerNarrowing(row: Columns): Narrowing | undefined {
  const narrowing = narrowingOf(row);
  return Object.values(narrowing).some((one) => one !== null) ? narrowing : undefined;
}

/** The subject of a request. Each belongs to one installation; a contract belongs to one customer. */
export type Subject =
  | { readonly deployment_id: string }
  | { readonly lease_id: string }
  | { readonly device_id: string }
  | { readonly contract_id: string };

/**
 * Refuses subjects outside the narrowing of the caller's token, and missing ones with the same error.
 * @throws ServiceError `not_allowed` with the reason `outside_narrowing`
 */
export async function refuseOutside(
  db: Db,
  { narrowing }: Narrowed,
  subject: Subject,
): Promise<void> {
  if (narrowing === undefined) return;
  const [[noun, id] = ['', '']] = Object.entries(subject);
  const isInside = await sql`select 1 from ${sql.table(TABLES[noun]!)}
    where ${sql.ref(noun)} = ${id} and ${isWithin(narrowing, noun)}`.execute(db);
  if (isInside.rows.length > 0) return;
  throw new ServiceError('not_allowed', `the token is not for the ${NOUNS[noun]} ${id}`, {
    reason: 'outside_narrowing',
    remedy: `The token is narrowed to ${describeNarrowing(narrowing)}; make another with \`service-local identity tokens create\`.`,
  });
}

const NOUNS: Readonly<Record<string, string>> = {
  deployment_id: 'installation',
  lease_id: 'lease',
  device_id: 'device',
  contract_id: 'contract',
};

const TABLES: Readonly<Record<string, string>> = {
  deployment_id: 'deployments',
  lease_id: 'license_leases',
  device_id: 'devices',
  contract_id: 'contracts',
};

/**
 * Condition for rows that lie within a narrowing.
 * @param noun of the table: contracts are found by `contract_id`, all others by `deployment_id`.
 */
export function isWithin(
  { deployment_ids, customer_id }: Narrowing,
  noun = 'deployment_id',
  table?: string,
): RawBuilder<SqlBool> {
  const key = noun === 'contract_id' ? noun : 'deployment_id';
  const column = sql.ref(table === undefined ? key : `${table}.${key}`);
  if (deployment_ids !== null) {
    const ids = sql.join(deployment_ids);
    return key === 'deployment_id'
      ? sql<SqlBool>`${column} in (${ids})`
      : sql<SqlBool>`${column} in (select d.contract_id from deployments d where d.deployment_id in (${ids}))`;
  }
  if (customer_id === null) return sql<SqlBool>`1 = 1`;
  return key === 'deployment_id'
    ? sql<SqlBool>`${column} in (select d.deployment_id from deployments d
        join contracts c on c.contract_id = d.contract_id where c.customer_id = ${customer_id})`
    : sql<SqlBool>`${column} in (select c.contract_id from contracts c where c.customer_id = ${customer_id})`;
}

/** Part of the key of a list's cursor. */
export function narrowingKey(within: Narrowing | undefined): string | undefined {
  return within && JSON.stringify([within.deployment_ids, within.customer_id]);
}

/**
 * Applies the limits of the token to the terms that an administrator requests.
 * @throws ServiceError `not_allowed` for a TTL above the token's maximum, or a grace period above
 * what contract, plan and server give
 */
export function boundRequestedTerms(
  { narrowing }: Narrowed,
  policy: LeasePolicy,
  registered: InstallationTerms,
  requested: RequestedTerms,
): RequestedTerms {
  const max = narrowing?.max_ttl_seconds ?? null;
  if (max === null) return requested;
  const { ttl_seconds: ttl, grace_period_seconds: grace } = requested;
  if (ttl !== undefined && ttl > max) throw ttlAbove(ttl, max);
  const usualGrace = registered.grace_period_seconds ?? policy.grace_period_seconds;
  if (grace !== undefined && grace > usualGrace) {
    throw new ServiceError(
      'not_allowed',
      `the token issues leases with a grace period of at most ${formatSeconds(usualGrace)}, and this one would have ${formatSeconds(grace)}`,
      { reason: 'grace_above_token_maximum', remedy: 'Request a shorter grace period, or none.' },
    );
  }
  return { ...requested, ttl_max_seconds: max };
}

/**
 * Refuses to admit a device that would renew leases longer than the token may issue.
 * @throws ServiceError `not_allowed`
 */
export function refuseLongerRenewals(
  { narrowing }: Narrowed,
  policy: LeasePolicy,
  registered: InstallationTerms,
): void {
  const max = narrowing?.max_ttl_seconds ?? null;
  const ttl = Math.min(registered.ttl_seconds ?? policy.ttl_seconds, policy.ttl_max_seconds);
  if (max !== null && ttl > max) throw ttlAbove(ttl, max);
}

function ttlAbove(ttl: number, max: number): ServiceError {
  return new ServiceError(
    'not_allowed',
    `the token issues leases of up to ${formatSeconds(max)}, and this one would last ${formatSeconds(ttl)}`,
    {
      reason: 'ttl_above_token_maximum',
      remedy: `Request a TTL of at most ${formatSeconds(max)}, or use a token with another maximum.`,
    },
  );
}

export function describeNarrowing(narrowing: Narrowing): string {
  const { deployment_ids, customer_id, max_ttl_seconds } = narrowing;
  return [
    ...(deployment_ids ? [`the installations ${deployment_ids.join(', ')}`] : []),
    ...(customer_id === null ? [] : [`the customer ${customer_id}`]),
    ...(max_ttl_seconds === null ? [] : [`leases of up to ${formatSeconds(max_ttl_seconds)}`]),
  ].join(' and ');
}
