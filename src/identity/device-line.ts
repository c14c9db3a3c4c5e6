/** The line of keys of a device, and the leases that were issued to it. */
import { sql } from 'kysely';
import type { Db, DevicesTable } from '../storage/tables.ts';
import type { PreviousLease } from './presented-lease.ts';

/** Ids of the device and of the keys that it replaced, newest first. */
export async function readDeviceLine(
  tx: Db,
  { device_id, replaces }: DevicesTable,
): Promise<readonly string[]> {
  if (replaces === null) return [device_id];
  const { rows } = await sql<{ device_id: string }>`
    with recursive line (device_id, place) as (
      select cast(${device_id} as text), 0
      union all
      select replaces, place + 1 from devices join line on devices.device_id = line.device_id
      where replaces is not null
    )
    select device_id from line order by place`.execute(tx);
  return rows.map((row) => row.device_id);
}

/** Also used for requests without a lease, so that omitting a revoked lease does not help. */
export async function hasRevokedLease(tx: Db, line: readonly string[]): Promise<boolean> {
  const revoked = await tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where('device_id', 'in', line)
    .where('revoked_at', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return revoked !== undefined;
}

/**
 * Looks for signs of a clone: a device renews each lease once, so another renewal of the same lease, or
 * a request that omits the latest lease, suggests that there are two copies of the device. A repeated
 * request is no sign of a clone.
 *
 * @returns the reason as a sentence.
 */
export async function findCloneSign(
  tx: Db,
  line: readonly string[],
  previous: PreviousLease | undefined,
  renewalId: string,
): Promise<string | undefined> {
  const other = tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where('renewal_id', '!=', renewalId)
    .limit(1);
  if (previous !== undefined) {
    const child = await other.where('previous_lease_id', '=', previous.lease_id).executeTakeFirst();
    if (child) return `the lease ${previous.lease_id} was renewed before, by another request`;
    if (previous.known && previous.device_id !== null) return undefined;
  }
  // A lease that a restored database lacks is newer than all leases that it contains.
  const since = previous === undefined || previous.known ? 0 : previous.issued_at + 1;
  const own = await other
    .where('device_id', 'in', line)
    .where('issued_at', '>=', since)
    .executeTakeFirst();
  return own && `it had the lease ${own.lease_id} and presents ${previous ? 'another' : 'none'}`;
}
