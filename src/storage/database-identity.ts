/** Which database it is, so that of a database and its copies only one trades. */
import { ServiceError } from '../errors.ts';
import { differences, placeOf, type Place } from './place.ts';
import type { DatabaseIdentityTable, Db } from './tables.ts';
import { storageUnavailable } from './unavailable.ts';
import type { Storage } from './storage.ts';

export interface DatabaseIdentity {
  /** A UUID that all copies have in common. */
  readonly database_id: string;
  /** From 1: one more each time that a copy is adopted. */
  readonly epoch: number;
  /** Where it lay when it was adopted, or when a server was first started on it. */
  readonly place: Place | null;
  /** The epoch of another copy, of which a runner knows; null while none is known. */
  readonly superseded_by: number | null;
}

/** Why nothing may trade by this database until it is adopted. */
export interface TradingHold {
  readonly reason: 'moved' | 'superseded';
  /** A clause that says why. */
  readonly why: string;
}

export async function databaseIdentity(db: Db): Promise<DatabaseIdentity> {
  const row = await db.selectFrom('database_identity').selectAll().executeTakeFirst();
  if (row === undefined) {
    throw storageUnavailable(new Error('the database has lost its identity'));
  }
  return identityOf(row);
}

function identityOf({ database_id, epoch, place, superseded_by }: DatabaseIdentityTable) {
  return {
    database_id,
    epoch,
    place: place === null ? null : (JSON.parse(place) as Place),
    superseded_by,
  };
}

/**
 * Why nothing may trade by this database; undefined when it may. Ask outside of transactions.
 * @throws ServiceError `storage_unavailable`
 */
export async function tradingHold(db: Db): Promise<TradingHold | undefined> {
  const { place, epoch, superseded_by } = await databaseIdentity(db);
  if (superseded_by !== null) {
    return {
      reason: 'superseded',
      why: `a runner has taken orders from a copy of it with the epoch ${superseded_by}, and this one has ${epoch}`,
    };
  }
  if (place === null) return undefined;
  const found = differences(place, await placeOf(db));
  return found.length === 0 ? undefined : { reason: 'moved', why: found.join('; ') };
}

/** @throws ServiceError `database_not_adopted` while nothing may trade by the database. */
export async function refuseNotAdopted(db: Db): Promise<void> {
  const hold = await tradingHold(db);
  if (hold !== undefined) throw notAdopted(hold);
}

export function notAdopted({ reason, why }: TradingHold): ServiceError {
  return new ServiceError(
    'database_not_adopted',
    `nothing trades by this database, as it may be a copy of one that does: ${why}`,
    { reason, remedy: ADOPT },
  );
}

const ADOPT =
  "See that nothing trades by the other one; then run `service-local server adopt` on the server's machine.";

/** Keeps where a database lies on which no server has been started yet. */
export async function settlePlace(storage: Storage): Promise<void> {
  if ((await databaseIdentity(storage.read)).place !== null) return;
  const place = await placeOf(storage.read);
  await storage.write((tx) =>
    tx
      .updateTable('database_identity')
      .set({ place: JSON.stringify(place) })
      .where('place', 'is', null)
      .execute(),
  );
}

/** Has the database be the one by which trading goes on, at this place. @returns its new identity. */
export async function adoptAt(tx: Db, place: Place): Promise<DatabaseIdentity> {
  const { epoch, superseded_by } = await databaseIdentity(tx);
  await tx
    .updateTable('database_identity')
    .set({
      epoch: Math.max(epoch, superseded_by ?? 0) + 1,
      place: JSON.stringify(place),
      superseded_by: null,
    })
    .execute();
  return databaseIdentity(tx);
}

/** Keeps that a copy has been adopted: nothing may trade by this database any longer. */
export async function supersede(tx: Db, epoch: number): Promise<void> {
  await tx
    .updateTable('database_identity')
    .set({ superseded_by: epoch })
    .where('epoch', '<', epoch)
    .execute();
}
