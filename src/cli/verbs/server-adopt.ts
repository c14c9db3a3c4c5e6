import { ServiceError } from '../../errors.ts';
import { onDatabase } from '../administrators.ts';
import { ask } from '../ask.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    "Has trading continue by this database after it was copied, restored or moved. A server that finds its database at another place than before starts no paper session and no deployment, as the original may still trade. See first that nothing trades by the other one. The epoch of the database is raised, so that runners take no orders from servers of the other one; the audit log keeps it. Works on the server's database, on the server's machine; a running server continues by itself within seconds.",
  options: {
    yes: { description: 'adopt it without asking' },
  },
  examples: ['server adopt', 'server adopt --yes --json'],
  async run(context, _args, { yes }) {
    const { adoptDatabase } = await import('../../identity/adopt.ts');
    const { databaseIdentity, tradingHold } = await import('../../storage/database-identity.ts');
    return onDatabase(context, async (identity) => {
      const { read } = identity.storage;
      const [{ database_id, epoch }, hold] = [
        await databaseIdentity(read),
        await tradingHold(read),
      ];
      context.message(
        hold
          ? `nothing trades by it: ${hold.why}`
          : 'it is where it was, and may trade as it is: adopt it only where an exact clone of the whole machine exists',
      );
      if (!yes) await confirm(context, database_id, epoch);
      const adopted = await adoptDatabase(identity);
      const data = { database_id, epoch: adopted.epoch, previous_epoch: epoch };
      return {
        data,
        show(out) {
          out.line(`Adopted: the database ${database_id} has the epoch ${adopted.epoch} now.`);
        },
      };
    });
  },
});

/** @throws ServiceError `confirmation_mismatch`; `usage` where nobody can be asked. */
async function confirm(
  context: Parameters<typeof ask>[0],
  database_id: string,
  epoch: number,
): Promise<void> {
  const wanted = database_id.slice(0, 8);
  const question = `Nothing else may trade by the database ${database_id}, epoch ${epoch}. Type ${wanted} to adopt it:`;
  const typed = await ask(context, question, '--yes');
  if (typed === wanted) return;
  throw new ServiceError('confirmation_mismatch', `'${typed}' is not ${wanted}`, {
    remedy: `Type ${wanted}, the beginning of the id of the database.`,
  });
}
