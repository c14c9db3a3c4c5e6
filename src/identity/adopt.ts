import { adoptAt, databaseIdentity, type DatabaseIdentity } from '../storage/database-identity.ts';
import { placeOf } from '../storage/place.ts';
import { appendAudit } from './audit.ts';
import type { IdentityStore } from './context.ts';

/** Allows trading with this database and with none of its copies; writes an audit entry. */
export async function adoptDatabase({ storage, clock }: IdentityStore): Promise<DatabaseIdentity> {
  const place = await placeOf(storage.read);
  return storage.write(async (tx) => {
    const before = await databaseIdentity(tx);
    const adopted = await adoptAt(tx, place);
    await appendAudit(tx, clock(), {
      actor: 'operator',
      action: 'server.database.adopt',
      target: `database:${adopted.database_id}`,
      details: {
        epoch: adopted.epoch,
        previous_epoch: before.epoch,
        previous_place: before.place,
        superseded_by: before.superseded_by,
        place,
      },
    });
    return adopted;
  });
}
