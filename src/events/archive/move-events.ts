/** Moves the events of a part out of the database, and back. */
import { GENESIS, type ChainHead } from '../../base/hash-chain.ts';
import { sql } from 'kysely';
import { ServiceError } from '../../base/errors.ts';
import type { BotEventArchivesTable, BotEventsTable, Db } from '../../storage/tables.ts';
import { insertRows } from '../append.ts';
import { storePackedBars } from '../packed-bar-rows.ts';
import { readHead, readRows } from '../read-events.ts';
import { readArchiveHead } from './archived-events.ts';
import { tampered, type ArchivePart } from './part.ts';

/** Archived events that stay in the database, too, because other tables refer to them. */
export interface KeptEvents {
  readonly kinds: readonly string[];
  readonly seqs: readonly number[];
}

/** Where the events of a part are: a file that was written and verified. */
export type ArchiveFile = Pick<BotEventArchivesTable, 'file' | 'file_bytes' | 'file_sha256'>;

/**
 * Removes the events of a part from the database, after checking that they are still those of the file
 * and follow the archived ones. Call it in a write without scope, or in the scope of the bot.
 *
 * @throws ServiceError `conflict`, reason `archive_moved`, if another process archived or restored events
 *   of the bot meanwhile; `events_tampered`.
 */
export async function moveToArchive(
  tx: Db,
  now: number,
  part: ArchivePart,
  file: ArchiveFile,
  kept: KeptEvents,
): Promise<void> {
  const { bot_id, first_seq, last_seq: seq, prev_hash, hash } = part;
  const before = { seq: first_seq - 1, hash: prev_hash };
  const { seq: head_seq } = await readHead(tx, bot_id);
  if (head_seq <= seq) throw new RangeError('the last event of a log is never archived');
  const { rows } = await readRows(tx, bot_id, { after_seq: seq - 1, until_seq: seq, limit: 1 });
  if (rows[0]?.hash !== hash) throw tampered(bot_id, { seq, fault: 'altered' });
  await moveArchiveHead(tx, bot_id, before, { seq, hash });
  await tx
    .insertInto('bot_event_archives')
    .values({ ...part, ...file, archived_at: now })
    .execute();
  await deleteEvents(tx, bot_id, seq, kept);
}

/** Compares the head of the archived part with `before`, and sets it. */
async function moveArchiveHead(
  tx: Db,
  bot_id: string,
  before: ChainHead,
  after: ChainHead,
): Promise<void> {
  const current = await readArchiveHead(tx, bot_id);
  if (current.seq !== before.seq || current.hash !== before.hash) {
    throw new ServiceError(
      'conflict',
      `another process has moved the archive of bot ${bot_id} from event ${before.seq} to ${current.seq}`,
      { reason: 'archive_moved', remedy: 'Run the command again.' },
    );
  }
  if (after.seq === 0) {
    await tx.deleteFrom('bot_event_heads').where('bot_id', '=', bot_id).execute();
    return;
  }
  const head = { seq: after.seq, hash: after.hash };
  await tx
    .insertInto('bot_event_heads')
    .values({ bot_id, ...head })
    .onConflict((conflict) => conflict.column('bot_id').doUpdateSet(head))
    .execute();
}

async function deleteEvents(
  tx: Db,
  bot_id: string,
  last_seq: number,
  { kinds, seqs }: KeptEvents,
): Promise<void> {
  const bases = await listBases(tx, bot_id, last_seq);
  const stay = [...new Set([...seqs, ...bases])].filter((seq) => seq <= last_seq);
  await tx
    .deleteFrom('bot_events')
    .where('bot_id', '=', bot_id)
    .where('seq', '<=', last_seq)
    .$if(kinds.length > 0, (query) => query.where('kind', 'not in', kinds))
    .$if(stay.length > 0, (query) => query.where('seq', 'not in', stay))
    .execute();
  await tx
    .deleteFrom('packed_bars')
    .where('bot_no', '=', (of) =>
      of.selectFrom('bot_numbers').select('bot_no').where('bot_id', '=', bot_id),
    )
    .where('seq', '<=', last_seq)
    .execute();
  await tx
    .deleteFrom('bot_snapshots')
    .where('bot_id', '=', bot_id)
    .where('seq', '<=', last_seq)
    .execute();
}

/** Archived events to which packed rows of later events refer. */
async function listBases(tx: Db, bot_id: string, last_seq: number): Promise<number[]> {
  const { rows } = await sql<{
    readonly seq: number;
  }>`select distinct packed.seq - packed.base as seq
    from bot_numbers bot
    join packed_bars packed on packed.bot_no = bot.bot_no
    where bot.bot_id = ${bot_id} and packed.seq > ${last_seq}
      and packed.seq - packed.base <= ${last_seq}`.execute(tx);
  return rows.map(({ seq }) => seq);
}

/**
 * Puts the events of the newest part back into the database, unchanged. Call it in a write without
 * scope, since it stores bars that bots share.
 *
 * @param rows the verified events of the part.
 * @throws ServiceError `conflict`, reason `archive_moved`
 */
export async function restorePart(
  tx: Db,
  { bot_id, first_seq, last_seq, prev_hash, hash }: ArchivePart,
  rows: readonly BotEventsTable[],
): Promise<void> {
  const before = first_seq === 1 ? GENESIS : { seq: first_seq - 1, hash: prev_hash };
  await moveArchiveHead(tx, bot_id, { seq: last_seq, hash }, before);
  const kept = await tx
    .selectFrom('bot_events')
    .select('seq')
    .where('bot_id', '=', bot_id)
    .where('seq', '>=', first_seq)
    .where('seq', '<=', last_seq)
    .execute();
  const whole = new Set(kept.map(({ seq }) => seq));
  const missing = await storePackedBars(tx, rows, { bases: new Map(), whole });
  await insertRows(
    tx,
    missing.filter(({ seq }) => !whole.has(seq)),
  );
  await tx
    .deleteFrom('bot_event_archives')
    .where('bot_id', '=', bot_id)
    .where('first_seq', '=', first_seq)
    .execute();
}
