import { ServiceError } from '../base/errors.ts';
import type { Db, LicenseLeasesTable } from '../storage/tables.ts';
import { getInstallation } from './installations.ts';
import { isWithin, narrowingKey, type Narrowing } from './narrowing.ts';
import { readPage, type Page, type PageRequest } from '../storage/paging.ts';

export const LEASE_STATES = ['valid', 'grace', 'expired', 'revoked'] as const;
export type LeaseState = (typeof LEASE_STATES)[number];

/** A lease in the registry. Times are milliseconds since the Unix epoch. */
export interface LeaseRecord extends Omit<LicenseLeasesTable, 'entitlements'> {
  readonly entitlements: readonly string[];
  readonly state: LeaseState;
}

export interface LeaseFilter {
  readonly deployment_id?: string | undefined;
  readonly state?: LeaseState | undefined;
  /** Id of the first lease of a chain of renewals. */
  readonly lineage_id?: string | undefined;
  /** Only renewals of this lease. */
  readonly previous_lease_id?: string | undefined;
  readonly within?: Narrowing | undefined;
}

/**
 * Lists leases, newest first.
 * @throws ServiceError `not_found` for the installation.
 */
export async function listLeases(
  db: Db,
  now: number,
  { deployment_id, state, lineage_id, previous_lease_id, within }: LeaseFilter,
  page: PageRequest,
): Promise<Page<LeaseRecord>> {
  if (deployment_id !== undefined) await getInstallation(db, deployment_id);
  return readPage(
    ['leases', deployment_id, state, lineage_id, previous_lease_id, narrowingKey(within)],
    page,
    ({ lease_id }) => lease_id,
    async (after, limit) => {
      let query = leases(db).orderBy('lease_id', 'desc').limit(limit);
      if (after !== undefined) query = query.where('lease_id', '<', after);
      if (deployment_id !== undefined) {
        query = query.where('license_leases.deployment_id', '=', deployment_id);
      }
      if (within !== undefined) query = query.where(isWithin(within, 'lease_id', 'deployments'));
      if (lineage_id !== undefined) query = query.where('lineage_id', '=', lineage_id);
      if (previous_lease_id !== undefined) {
        query = query.where('previous_lease_id', '=', previous_lease_id);
      }
      if (state === 'revoked') {
        query = query.where((is) =>
          is.or([is(LEASE, 'is not', null), is(INSTALLATION, 'is not', null)]),
        );
      } else if (state !== undefined) {
        query = query.where(LEASE, 'is', null).where(INSTALLATION, 'is', null);
      }
      if (state === 'valid') query = query.where('expires_at', '>', now);
      if (state === 'grace') {
        query = query.where('expires_at', '<=', now).where('grace_ends_at', '>', now);
      }
      if (state === 'expired') query = query.where('grace_ends_at', '<=', now);
      return (await query.execute()).map((row) => recordOf(row, now));
    },
  );
}

export async function getLease(db: Db, now: number, leaseId: string): Promise<LeaseRecord> {
  const row = await leases(db).where('lease_id', '=', leaseId).executeTakeFirst();
  if (row === undefined) {
    throw new ServiceError('not_found', `there is no lease ${leaseId}`, {
      remedy: 'See `service-local identity leases list`.',
    });
  }
  return recordOf(row, now);
}

const LEASE = 'license_leases.revoked_at';
const INSTALLATION = 'deployments.revoked_at';

/** Selects leases; a revocation of the whole installation counts for each of its leases. */
function leases(db: Db) {
  return db
    .selectFrom('license_leases')
    .innerJoin('deployments', 'deployments.deployment_id', 'license_leases.deployment_id')
    .selectAll('license_leases')
    .select(({ fn }) => [
      fn.coalesce(LEASE, INSTALLATION).as('revoked_at'),
      fn.coalesce('license_leases.revoked_by', 'deployments.revoked_by').as('revoked_by'),
      fn
        .coalesce('license_leases.revoked_reason', 'deployments.revoked_reason')
        .as('revoked_reason'),
    ]);
}

function recordOf(row: LicenseLeasesTable, now: number): LeaseRecord {
  return {
    ...row,
    entitlements: JSON.parse(row.entitlements) as string[],
    state: stateOf(row, now),
  };
}

export function stateOf(
  row: Pick<LicenseLeasesTable, 'revoked_at' | 'expires_at' | 'grace_ends_at'>,
  now: number,
): LeaseState {
  if (row.revoked_at !== null) return 'revoked';
  if (now < row.expires_at) return 'valid';
  return now < row.grace_ends_at ? 'grace' : 'expired';
}
