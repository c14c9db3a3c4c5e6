import { sql, type RawBuilder } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { isId } from '../lease/claims.ts';
import { LONGEST_REST_MS } from '../lease/renewal-moment.ts';
import { readPage, type Page, type PageRequest } from '../storage/paging.ts';
import type { Db } from '../storage/tables.ts';
import { stateOf } from './leases.ts';
import { isWithin, narrowingKey, type Narrowing } from './narrowing.ts';

export const LICENSE_STATES = ['valid', 'grace', 'expired', 'revoked', 'none'] as const;

/** `revoked` if the installation is revoked, otherwise the state of its newest lease. */
export type LicenseState = (typeof LICENSE_STATES)[number];

/** An installation with its newest lease. Times are milliseconds since the Unix epoch. */
export interface License {
  readonly deployment_id: string;
  readonly name: string;
  readonly customer_id: string;
  readonly customer: string;
  readonly contract_id: string;
  readonly contract_ends_at: number;
  readonly state: LicenseState;
  /** Whether a device is overdue; see `isSilent`. */
  readonly silent: boolean;
  readonly lease: NewestLease | null;
}

export interface NewestLease {
  readonly lease_id: string;
  readonly device_id: string | null;
  readonly public_key_id: string;
  readonly issued_at: number;
  readonly expires_at: number;
  readonly grace_ends_at: number;
}

export interface LicenseFilter {
  readonly state?: LicenseState | undefined;
  readonly silent?: boolean | undefined;
  /** Part of the id or name of an installation or customer, or the id of a lease or device. */
  readonly search?: string | undefined;
  readonly within?: Narrowing | undefined;
}

/** Lists installations with their newest leases, ordered by id. */
export async function listLicenses(
  db: Db,
  now: number,
  filter: LicenseFilter,
  page: PageRequest,
): Promise<Page<License>> {
  const { state, silent = false, search, within } = filter;
  return readPage(
    ['licenses', state, String(silent), search, narrowingKey(within)],
    page,
    ({ deployment_id }) => deployment_id,
    (after, limit) => {
      const conditions = [
        ...(after === undefined ? [] : [sql`deployments.deployment_id > ${after}`]),
        ...(state === undefined ? [] : [isInState(state, now)]),
        ...(silent ? [isSilent(now)] : []),
        ...(search === undefined ? [] : [matches(search)]),
        ...(within === undefined ? [] : [isWithin(within, 'deployment_id', 'deployments')]),
      ];
      return select(db, now, conditions, limit);
    },
  );
}

export async function getLicense(db: Db, now: number, id: string): Promise<License> {
  // Invalid ids are not queried: PostgreSQL rejects texts that contain NUL.
  const [license] = isId(id)
    ? await select(db, now, [sql`deployments.deployment_id = ${id}`], 1)
    : [];
  if (license !== undefined) return license;
  throw new ServiceError('not_found', `there is no installation ${JSON.stringify(id)}`, {
    remedy: 'See `service-local identity licenses list`.',
  });
}

/**
 * SQL condition for a silent installation: one of its devices has not renewed although half of the
 * time in which devices renew is over. The owner should be notified before the lease ends. For queries
 * that contain `deployments` and `contracts`.
 */
export function isSilent(now: number): RawBuilder<unknown> {
  return sql`(${isExpected(now)} and exists (${silentDevices(now)}))`;
}

/**
 * As `isSilent`, for the few rows of a page. The offset keeps PostgreSQL from scanning the devices of
 * all installations.
 */
function isSilentInPage(now: number): RawBuilder<unknown> {
  return sql`(${isExpected(now)} and exists (${silentDevices(now)} limit 1 offset 0))`;
}

function isExpected(now: number): RawBuilder<unknown> {
  return sql`deployments.revoked_at is null and contracts.ends_at > ${now}`;
}

function silentDevices(now: number): RawBuilder<unknown> {
  // When a device renews is defined in src/lease/renewal-moment.ts.
  return sql`select 1 from devices
    join license_leases latest on latest.lease_id = (
      select lease_id from license_leases
      where device_id = devices.device_id order by issued_at desc, lease_id desc limit 1
    )
    where devices.deployment_id = deployments.deployment_id
      and devices.revoked_at is null and latest.revoked_at is null
      and latest.expires_at - case
        when latest.expires_at - latest.issued_at > ${3 * LONGEST_REST_MS}
        then ${LONGEST_REST_MS / 2}
        else (latest.expires_at - latest.issued_at) / 6 end < ${now}`;
}

const REVOKED = sql`(deployments.revoked_at is not null or newest.revoked_at is not null)`;

function isInState(state: LicenseState, now: number): RawBuilder<unknown> {
  if (state === 'revoked') return REVOKED;
  const worth = {
    valid: sql`newest.expires_at > ${now}`,
    grace: sql`newest.expires_at <= ${now} and newest.grace_ends_at > ${now}`,
    expired: sql`newest.grace_ends_at <= ${now}`,
    none: sql`newest.lease_id is null`,
  };
  return sql`(not ${REVOKED} and ${worth[state]})`;
}

function matches(search: string): RawBuilder<unknown> {
  const part = `%${search.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
  const like = (column: string) => sql`lower(${sql.ref(column)}) like ${part} escape '\\'`;
  return sql`(${like('deployments.deployment_id')} or ${like('deployments.name')}
    or ${like('customers.customer_id')} or ${like('customers.name')}
    or deployments.deployment_id in
      (select deployment_id from license_leases where lease_id = ${search})
    or deployments.deployment_id in (select deployment_id from devices where device_id = ${search}))`;
}

type Row = Omit<License, 'state' | 'silent' | 'lease'> & {
  readonly silent: number;
  readonly deployment_revoked_at: number | null;
  readonly revoked_at: number | null;
} & { readonly [Name in keyof NewestLease]: NewestLease[Name] | null };

async function select(
  db: Db,
  now: number,
  conditions: readonly RawBuilder<unknown>[],
  limit: number,
): Promise<License[]> {
  const { rows } = await sql<Row>`
    select deployments.deployment_id, deployments.name, customers.customer_id,
      customers.name as customer, contracts.contract_id, contracts.ends_at as contract_ends_at,
      case when ${isSilentInPage(now)} then 1 else 0 end as silent,
      deployments.revoked_at as deployment_revoked_at, newest.revoked_at,
      newest.lease_id, newest.device_id, newest.public_key_id,
      newest.issued_at, newest.expires_at, newest.grace_ends_at
    from deployments
    join contracts on contracts.contract_id = deployments.contract_id
    join customers on customers.customer_id = contracts.customer_id
    left join license_leases newest on newest.lease_id = (
      select max(lease_id) from license_leases
      where deployment_id = deployments.deployment_id
    )
    ${conditions.length > 0 ? sql`where ${sql.join(conditions, sql` and `)}` : sql``}
    order by deployments.deployment_id limit ${limit}`.execute(db);
  return rows.map((row) => licenseOf(row, now));
}

function licenseOf(row: Row, now: number): License {
  const { deployment_id, name, customer_id, customer, contract_id, contract_ends_at } = row;
  const { lease_id, device_id, public_key_id, issued_at, expires_at, grace_ends_at } = row;
  const revoked_at = row.deployment_revoked_at ?? row.revoked_at;
  const lease =
    lease_id === null
      ? null
      : ({
          lease_id,
          device_id,
          public_key_id,
          issued_at,
          expires_at,
          grace_ends_at,
        } as NewestLease);
  return {
    deployment_id,
    name,
    customer_id,
    customer,
    contract_id,
    contract_ends_at,
    state:
      lease === null
        ? revoked_at === null
          ? 'none'
          : 'revoked'
        : stateOf({ ...lease, revoked_at }, now),
    silent: row.silent === 1,
    lease,
  };
}
