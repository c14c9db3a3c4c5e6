import { sql } from 'kysely';
import type { Db } from '../storage/tables.ts';
import type { LeaseState } from './leases.ts';
import { isSilent } from './licenses.ts';
import { selectTrust } from './published-trust.ts';

export interface IdentityFigures {
  /** A revoked lease counts as revoked until it ends, then as expired. */
  readonly leases: Readonly<Record<LeaseState, number>>;
  /** Count of installations with an overdue device; see `isSilent`. */
  readonly silent_installations: number;
  /** Time at which the signing key became active, ms; null without one. */
  readonly key_activated_at: number | null;
  /** Expiry of the trust root and its keyset, ms since the Unix epoch; null without a root. */
  readonly trust: { readonly root: number; readonly keyset: number } | null;
}

/** Expensive: reads a row for every device and every current lease. */
export async function identityFigures(db: Db, now: number): Promise<IdentityFigures> {
  const { all } = await db
    .selectFrom('license_leases')
    .select(({ fn }) => fn.countAll<number>().as('all'))
    .executeTakeFirstOrThrow();
  const revoked = sql`(leases.revoked_at is not null or deployments.revoked_at is not null)`;
  const { rows: counts } = await sql<Record<'valid' | 'grace' | 'revoked', number>>`
    select
      count(*) filter (where not ${revoked} and expires_at > ${now}) as valid,
      count(*) filter (where not ${revoked} and expires_at <= ${now}) as grace,
      count(*) filter (where ${revoked}) as revoked
    from license_leases leases
    join deployments on deployments.deployment_id = leases.deployment_id
    where grace_ends_at > ${now}`.execute(db);
  const { valid, grace, revoked: denied } = counts[0]!;

  const { rows } = await sql<{ silent: number }>`
    select count(*) as silent
    from deployments
    join contracts on contracts.contract_id = deployments.contract_id
    where ${isSilent(now)}`.execute(db);

  const key = await db
    .selectFrom('signing_keys')
    .select('activated_at')
    .where('status', '=', 'active')
    .executeTakeFirst();
  const trust = await selectTrust(db);
  return {
    leases: { valid, grace, expired: all - valid - grace - denied, revoked: denied },
    silent_installations: rows[0]!.silent,
    key_activated_at: key?.activated_at ?? null,
    trust: trust ? { root: trust.root_expires_at, keyset: trust.keyset_expires_at } : null,
  };
}
