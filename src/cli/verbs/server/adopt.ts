import { ServiceError } from '../../../base/errors.ts';
import { withDatabase } from '../../administrators.ts';
import { ask } from '../../ask.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: "allow trading with a copied or moved database; run on the server's machine",
  description:
    "Allows trading with this database after it was copied, restored or moved. A server that finds its database at a new location starts no paper session and no deployment, because the original may still trade. First make sure that nothing trades with the other database. The command raises the epoch of the database, so that runners reject servers of the other one, and writes an audit entry. Run it on the server's machine; a running server resumes within seconds.",
  options: {
    yes: { description: 'adopt without confirmation' },
  },
  examples: ['server adopt', 'server adopt --yes --json'],
  async run(context, _args, { yes }) {
    const { adoptDatabase } = await import('../../../identity/adopt.ts');
    const { databaseIdentity, tradingHold } = await import('../../../storage/database-identity.ts');
    return withDatabase(context, async (identity) => {
      const { read } = identity.storage;
      const [{ database_id, epoch }, hold] = [
        await databaseIdentity(read),
        await tradingHold(read),
      ];
      context.message(
        hold
          ? `nothing trades with this database: ${hold.why}`
          : 'the database is at its known location and may trade already: adopt it only if an exact clone of the whole machine exists',
      );
      if (!yes) await confirm(context, database_id, epoch);
      const adopted = await adoptDatabase(identity);
      const data = { database_id, epoch: adopted.epoch, previous_epoch: epoch };
      return {
        data,
        show(out) {
          out.line(`Adopted: database ${database_id} now has epoch ${adopted.epoch}.`);
        },
      };
    });
  },
});

/**
 * @throws ServiceError `confirmation_mismatch`; `usage` without a terminal for the confirmation.
 */
async function confirm(
  context: Parameters<typeof ask>[0],
  database_id: string,
  epoch: number,
): Promise<void> {
  const wanted = database_id.slice(0, 8);
  const question = `Make sure that nothing trades with another copy of database ${database_id}, epoch ${epoch}. Type ${wanted} to adopt this one:`;
  const typed = await ask(context, question, '--yes');
  if (typed === wanted) return;
  throw new ServiceError('confirmation_mismatch', `'${typed}' is not ${wanted}`, {
    remedy: `Type ${wanted}, the beginning of the database id.`,
  });
}
