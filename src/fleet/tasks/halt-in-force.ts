import { sql } from 'kysely';
import { ServiceError } from '../../base/errors.ts';
import { prepareQuery } from '../../storage/prepare-query.ts';
import { isPostgres } from '../../storage/prepare-rows-query.ts';
import { shareQuery } from '../../storage/share-query.ts';
import type { Db, HaltsTable } from '../../storage/tables.ts';
import type { BotRow } from '../registry/bots.ts';

export type KnownHalt = Readonly<Pick<HaltsTable, (typeof HALT)[number]>>;

const HALT = ['halt_id', 'scope', 'reason', 'requested_by', 'requested_at'] as const;

/**
 * Finds the halt in force for a bot; a halt of all bots comes before its own. Within a write, the result
 * stays valid until the write is committed.
 */
export async function findHaltInForce(tx: Db, bot_id: string): Promise<KnownHalt | undefined> {
  if (!isPostgres(tx)) return (await selectHalt(tx, { bot_id }))[0];
  const halts = await selectHalts(tx, bot_id);
  const found = halts.find((one) => one.bot_id === null || one.bot_id === bot_id);
  if (found === undefined) return undefined;
  const { bot_id: _bot, ...halt } = found;
  return halt;
}

const selectHalt = prepareQuery((db, { bot_id }: { readonly bot_id: string }) =>
  db
    .selectFrom('halts')
    .select(HALT)
    .where('lifted_at', 'is', null)
    .where((is) => is.or([is('bot_id', '=', bot_id), is('bot_id', 'is', null)]))
    .orderBy('scope')
    .limit(1),
);

const selectHaltsOf = prepareQuery((db, { bot_ids }: { readonly bot_ids: readonly string[] }) =>
  db
    .selectFrom('halts')
    .select([...HALT, 'bot_id'])
    .where('lifted_at', 'is', null)
    .where((is) =>
      is.or([sql<boolean>`bot_id = any(cast(${bot_ids} as text[]))`, is('bot_id', 'is', null)]),
    )
    .orderBy('scope'),
);

const selectHalts = shareQuery((db, bot_ids: readonly string[]) => selectHaltsOf(db, { bot_ids }));

/** Finds the halt that ended a deployment, if a halt did. */
export async function findEndingHalt(
  db: Db,
  { bot_id, deployment_id }: Readonly<Record<'bot_id' | 'deployment_id', string>>,
): Promise<KnownHalt | undefined> {
  return db
    .selectFrom('halts')
    .select(HALT)
    .where((is) => is.or([is('bot_id', '=', bot_id), is('bot_id', 'is', null)]))
    .where((is) =>
      is.exists(
        is
          .selectFrom('halted_deployments')
          .select('deployment_id')
          .whereRef('halted_deployments.halt_id', '=', 'halts.halt_id')
          .where('deployment_id', '=', deployment_id),
      ),
    )
    .orderBy('halt_id')
    .limit(1)
    .executeTakeFirst();
}

/** Returns the ids of those of the deployments that a halt ended. */
export async function findHalted(
  db: Db,
  deployments: readonly Readonly<Record<'bot_id' | 'deployment_id', string>>[],
): Promise<ReadonlySet<string>> {
  if (deployments.length === 0) return new Set();
  const bot_ids = [...new Set(deployments.map(({ bot_id }) => bot_id))];
  const rows = await db
    .selectFrom('halts')
    .innerJoin('halted_deployments as ended', 'ended.halt_id', 'halts.halt_id')
    .select('ended.deployment_id')
    .where((is) => is.or([is('halts.bot_id', 'in', bot_ids), is('halts.bot_id', 'is', null)]))
    .where(
      'ended.deployment_id',
      'in',
      deployments.map(({ deployment_id }) => deployment_id),
    )
    .execute();
  return new Set(rows.map(({ deployment_id }) => deployment_id));
}

/** @throws ServiceError `conflict` with the reason `halted` while a halt is in force for the bot. */
export async function refuseHalted(
  tx: Db,
  { bot_id, slug }: Pick<BotRow, 'bot_id' | 'slug'>,
): Promise<void> {
  const halt = await findHaltInForce(tx, bot_id);
  if (halt === undefined) return;
  const isAll = halt.scope === 'all';
  throw new ServiceError(
    'conflict',
    `${isAll ? 'all bots are' : 'the bot is'} halted by halt ${halt.halt_id}`,
    {
      reason: 'halted',
      remedy: isAll
        ? 'See `service-local bots halts` for the reason, and lift it with `service-local bots resume-all --reason "…"`.'
        : `See \`service-local bots halts\` for the reason, and lift it with \`service-local bots resume ${slug} --reason "…"\`.`,
    },
  );
}
