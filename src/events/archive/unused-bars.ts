import { sql } from 'kysely';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';

/** Rows deleted per write, so that other writes wait only briefly. */
const AT_ONCE = 10_000;

/**
 * Deletes stored bars to which no packed event refers. Events that are added meanwhile may refer to any
 * of them, so each write checks the events that were added since the bars were found.
 *
 * @returns the number of deleted rows.
 */
export async function deleteUnusedBars({
  read,
  write,
}: Pick<Storage, 'read' | 'write'>): Promise<number> {
  // The heads come first: an event that the search misses is later than the head of its bot.
  const heads = await readHeads(read);
  const unused = await read
    .selectFrom('stored_bars')
    .select('digest')
    .where('digest', 'not in', (of) => of.selectFrom('packed_bars').select('bars'))
    .execute();
  for (let place = 0; place < unused.length; place += AT_ONCE) {
    const some = unused.slice(place, place + AT_ONCE).map(({ digest }) => Buffer.from(digest));
    // Without a scope, so that no session records bars during the write.
    await write(async (tx) => deleteBars(tx, await withoutUsed(tx, heads, some)));
  }
  return unused.length;
}

interface Heads {
  readonly event_seq: number;
  readonly archived_seq: number | null;
}

async function readHeads(db: Db): Promise<ReadonlyMap<string, Heads>> {
  const rows = await db
    .selectFrom('bots')
    .leftJoin('bot_event_heads as archived', 'archived.bot_id', 'bots.bot_id')
    .select(['bots.bot_id', 'event_seq', 'archived.seq as archived_seq'])
    .execute();
  return new Map(rows.map(({ bot_id, ...heads }) => [bot_id, heads]));
}

async function withoutUsed(
  tx: Db,
  before: ReadonlyMap<string, Heads>,
  digests: readonly Buffer[],
): Promise<Buffer[]> {
  const left = new Map(digests.map((digest) => [digest.toString('hex'), digest]));
  for (const [bot_id, { event_seq, archived_seq }] of await readHeads(tx)) {
    const known = before.get(bot_id);
    // Archived events that were restored meanwhile are earlier than the known head.
    const seq = known?.archived_seq === archived_seq ? known.event_seq : 0;
    if (seq === event_seq) continue;
    const { rows } = await sql<{ readonly bars: Buffer }>`select bars from packed_bars
      where bot_no = (select bot_no from bot_numbers where bot_id = ${bot_id})
        and seq > ${seq}`.execute(tx);
    for (const { bars } of rows) left.delete(bars.toString('hex'));
  }
  return [...left.values()];
}

/** Values per statement: databases limit the number of parameters. */
const PER_STATEMENT = 1000;

async function deleteBars(tx: Db, digests: readonly Buffer[]): Promise<void> {
  for (let place = 0; place < digests.length; place += PER_STATEMENT) {
    const some = digests.slice(place, place + PER_STATEMENT);
    await tx.deleteFrom('stored_bars').where('digest', 'in', some).execute();
  }
}
