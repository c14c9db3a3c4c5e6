import type { Db } from '../../storage/tables.ts';

/** Ids in one query; for more, all slugs are read. */
const MOST_IDS = 500;

/** Row about a bot; its id is null for all bots. */
interface OfBot {
  readonly bot_id: string | null;
}

export type WithSlug<T> = T & { readonly bot_slug: string | null };

/** Adds the current slug of the bot of each row. Runs one query for all rows. */
export async function withSlugs<T extends OfBot>(
  db: Db,
  rows: readonly T[],
): Promise<WithSlug<T>[]> {
  const ids = [...new Set(rows.flatMap(({ bot_id }) => bot_id ?? []))];
  let query = db.selectFrom('bots').select(['bot_id', 'slug']);
  if (ids.length <= MOST_IDS) query = query.where('bot_id', 'in', ids);
  const bots = ids.length === 0 ? [] : await query.execute();
  const slugs = new Map<string | null, string>(bots.map(({ bot_id, slug }) => [bot_id, slug]));
  return rows.map((row) => ({ ...row, bot_slug: slugs.get(row.bot_id) ?? null }));
}

/** Names of bots by id, in one query. */
export async function readNames(
  db: Db,
  bot_ids: readonly string[],
): Promise<ReadonlyMap<string, { readonly slug: string; readonly name: string }>> {
  if (bot_ids.length === 0) return new Map();
  const bots = await db
    .selectFrom('bots')
    .select(['bot_id', 'slug', 'name'])
    .where('bot_id', 'in', [...new Set(bot_ids)])
    .execute();
  return new Map(bots.map(({ bot_id, ...names }) => [bot_id, names]));
}
