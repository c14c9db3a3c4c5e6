import { sql } from 'kysely';
import { LONGEST_REST_MS } from '../lease/schedule.ts';
import type { Db } from '../storage/tables.ts';
import type { LeaseState } from './leases.ts';

/** What an operator watches. */
export interface IdentityFigures {
  readonly leases: Readonly<Record<LeaseState, number>>;
  /**
   * Deployments whose devices have not renewed although half of the time they have for it is over:
   * their owner should be told before the lease ends.
   */
  readonly silent_deployments: number;
  /** When the key that signs became the active one; null without one. */
  readonly key_activated_at: number | null;
}

/** Reads every lease, so not for every request. */
export async function identityFigures(db: Db, now: number): Promise<IdentityFigures> {
  const revoked = sql`(license_leases.revoked_at is not null or deployments.revoked_at is not null)`;
  const counted = await sql<Record<LeaseState, number>>`
    select
      count(*) filter (where not ${revoked} and expires_at > ${now}) as valid,
      count(*) filter (where not ${revoked} and expires_at <= ${now} and grace_ends_at > ${now})
        as grace,
      count(*) filter (where not ${revoked} and grace_ends_at <= ${now}) as expired,
      count(*) filter (where ${revoked}) as revoked
    from license_leases
    join deployments on deployments.deployment_id = license_leases.deployment_id`.execute(db);

  // A device renews while between all and three quarters of the rest are left; see src/lease.
  const { rows } = await sql<{ silent: number }>`
    select count(distinct deployments.deployment_id) as silent
    from (
      select device_id, max(issued_at) as issued_at, max(expires_at) as expires_at
      from license_leases where device_id is not null group by device_id
    ) latest
    join devices on devices.device_id = latest.device_id and devices.revoked_at is null
    join deployments on deployments.deployment_id = devices.deployment_id
      and deployments.revoked_at is null
    join contracts on contracts.contract_id = deployments.contract_id and contracts.ends_at > ${now}
    where latest.expires_at - case
      when latest.expires_at - latest.issued_at > ${3 * LONGEST_REST_MS} then ${LONGEST_REST_MS / 2}
      else (latest.expires_at - latest.issued_at) / 6 end < ${now}`.execute(db);

  const key = await db
    .selectFrom('signing_keys')
    .select('activated_at')
    .where('status', '=', 'active')
    .executeTakeFirst();
  return {
    leases: counted.rows[0]!,
    silent_deployments: rows[0]!.silent,
    key_activated_at: key?.activated_at ?? null,
  };
}
