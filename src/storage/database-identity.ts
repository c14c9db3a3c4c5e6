/** Identity of a database, so that only one of a database and its copies trades. */
import { ServiceError } from '../base/errors.ts';
import { differences, placeOf, type Place } from './place.ts';
import type { DatabaseIdentityTable, Db } from './tables.ts';
import { storageUnavailable } from './storage-errors.ts';
import type { Storage } from './storage.ts';

export interface DatabaseIdentity {
  /** A UUID that all copies share. */
  readonly database_id: string;
  /** Starts at 1 and rises by one each time a copy is adopted. */
  readonly epoch: number;
  /** Its place when it was adopted, or when a server was first started on it. */
  readonly place: Place | null;
  /** Epoch of a newer copy, as reported by a runner; null if none is known. */
  readonly superseded_by: number | null;
}

/** Reason why nothing may trade with this database until it is adopted. */
export interface TradingHold {
  readonly reason: 'moved' | 'superseded';
  /** Explanation, as a clause for messages. */
  readonly why: string;
}

export async function databaseIdentity(db: Db): Promise<DatabaseIdentity> {
  const row = await db.selectFrom('database_identity').selectAll().executeTakeFirst();
  if (row === undefined) {
    throw storageUnavailable(new Error('the table database_identity is empty'));
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
 * Returns why nothing may trade with this database; undefined if trading is allowed. Call it
 * outside of transactions.
 * @throws ServiceError `storage_unavailable`
 */
export async function tradingHold(db: Db): Promise<TradingHold | undefined> {
  const { place, epoch, superseded_by } = await databaseIdentity(db);
  if (superseded_by !== null) {
    return {
      reason: 'superseded',
      why: `a runner works with a copy that has epoch ${superseded_by}, and this database has epoch ${epoch}`,
    };
  }
  if (place === null) return undefined;
  const found = differences(place, await placeOf(db));
  return found.length === 0 ? undefined : { reason: 'moved', why: found.join('; ') };
}

export async function requireAdopted(db: Db): Promise<void> {
  const hold = await tradingHold(db);
  if (hold !== undefined) throw notAdopted(hold);
}

export function notAdopted({ reason, why }: TradingHold): ServiceError {
  return new ServiceError(
    'database_not_adopted',
    `nothing trades with this database, because it may be a copy of another one that trades: ${why}`,
    { reason, remedy: ADOPT },
  );
}

const ADOPT =
  "Make sure that nothing trades with the other database; then run `service-local server adopt` on the server's machine.";

export async function recordPlace(storage: Storage): Promise<void> {
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

/**
 * Makes this database, at this place, the one that may trade.
 * @param knownEpoch highest known epoch of its copies.
 * @returns the new identity.
 */
export async function adoptAt(tx: Db, place: Place, knownEpoch = 0): Promise<DatabaseIdentity> {
  const { epoch, superseded_by } = await databaseIdentity(tx);
  await tx
    .updateTable('database_identity')
    .set({
      epoch: Math.max(epoch, superseded_by ?? 0, knownEpoch) + 1,
      place: JSON.stringify(place),
      superseded_by: null,
    })
    .execute();
  return databaseIdentity(tx);
}

/** Records that a copy has been adopted: nothing may trade with this database from now on. */
export async function supersede(tx: Db, epoch: number): Promise<void> {
  await tx
    .updateTable('database_identity')
    .set({ superseded_by: epoch })
    .where('epoch', '<', epoch)
    .execute();
}
