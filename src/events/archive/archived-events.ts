/**
 * The archived part of a log: its first events, which were moved from the database to files. Its head
 * is in `bot_event_heads`, and each file is a row of `bot_event_archives`.
 */
import { GENESIS, type ChainHead } from '../../base/hash-chain.ts';
import { ServiceError } from '../../base/errors.ts';
import { prepareQuery } from '../../storage/prepare-query.ts';
import type { BotEventArchivesTable, Db } from '../../storage/tables.ts';

/** Reads the last archived event of a bot; `GENESIS` if none is archived. */
export async function readArchiveHead(db: Db, bot_id: string): Promise<ChainHead> {
  const [head] = await selectHead(db, { bot_id });
  return head ?? GENESIS;
}

const selectHead = prepareQuery((db, { bot_id }: { readonly bot_id: string }) =>
  db.selectFrom('bot_event_heads').select(['seq', 'hash']).where('bot_id', '=', bot_id),
);

/** The last archived event, when it was recorded, and the state after it. */
export interface ArchivedState extends ChainHead {
  readonly last_recorded_at: number;
  /** JSON in the format of `bot_snapshots`. */
  readonly state: string;
}

/** Reads the state at the end of the archived part; undefined if no event is archived. */
export async function readArchivedState(
  db: Db,
  bot_id: string,
): Promise<ArchivedState | undefined> {
  const [archived] = await selectState(db, { bot_id });
  return archived;
}

const selectState = prepareQuery((db, { bot_id }: { readonly bot_id: string }) =>
  db
    .selectFrom('bot_event_heads as head')
    .innerJoin('bot_event_archives as part', (join) =>
      join.onRef('part.bot_id', '=', 'head.bot_id').onRef('part.last_seq', '=', 'head.seq'),
    )
    .select(['head.seq', 'head.hash', 'part.last_recorded_at', 'part.state'])
    .where('head.bot_id', '=', bot_id),
);

/** Events in one file. */
export type ArchivedPart = Readonly<
  Pick<BotEventArchivesTable, 'bot_id' | 'first_seq' | 'last_seq' | 'file' | 'file_sha256'>
>;

/** Finds the file with the next event, if that is archived. */
export async function readNextArchived(
  db: Db,
  bot_id: string,
  after_seq: number,
): Promise<ArchivedPart | undefined> {
  const [part] = await selectNext(db, { bot_id, after_seq });
  return part;
}

const selectNext = prepareQuery(
  (db, { bot_id, after_seq }: { readonly bot_id: string; readonly after_seq: number }) =>
    db
      .selectFrom('bot_event_archives')
      .select(['bot_id', 'first_seq', 'last_seq', 'file', 'file_sha256'])
      .where('bot_id', '=', bot_id)
      .where('last_seq', '>', after_seq)
      .orderBy('first_seq')
      .limit(1),
);

/** @throws ServiceError `archived` if the first event of a range is archived. */
export async function refuseArchived(db: Db, bot_id: string, first_seq: number): Promise<void> {
  const { seq } = await readArchiveHead(db, bot_id);
  if (first_seq <= seq) throw await archivedEventError(db, bot_id, first_seq);
}

/** Names the file that holds an archived event. */
export async function archivedEventError(
  db: Db,
  bot_id: string,
  seq: number,
): Promise<ServiceError> {
  const { seq: last } = await readArchiveHead(db, bot_id);
  const part = await selectParts(db, bot_id).where('last_seq', '>=', seq).executeTakeFirst();
  return archivedError(
    db,
    bot_id,
    last,
    part && `event ${seq} is in the month ${part.month}, file ${part.file}`,
    part?.month,
  );
}

/** Names the file that holds the archived events of a time, ms since the Unix epoch. */
export async function archivedTimeError(db: Db, bot_id: string, at: number): Promise<ServiceError> {
  const { seq: last } = await readArchiveHead(db, bot_id);
  const part = await selectParts(db, bot_id).where('last_recorded_at', '>=', at).executeTakeFirst();
  const time = new Date(at).toISOString();
  const where = part && `the last event by ${time} is in or before the file ${part.file}`;
  return archivedError(db, bot_id, last, where, part?.month);
}

/** For a run whose first event is not in the database. */
export async function archivedRunError(
  db: Db,
  bot_id: string,
  run_id: string,
): Promise<ServiceError> {
  const { seq: last } = await readArchiveHead(db, bot_id);
  return archivedError(db, bot_id, last, `no run ${run_id} begins after event ${last}`, undefined);
}

function selectParts(db: Db, bot_id: string) {
  return db
    .selectFrom('bot_event_archives')
    .select(['month', 'file'])
    .where('bot_id', '=', bot_id)
    .orderBy('first_seq')
    .limit(1);
}

async function archivedError(
  db: Db,
  bot_id: string,
  last: number,
  where: string | undefined,
  month: string | undefined,
): Promise<ServiceError> {
  const named = await db
    .selectFrom('bots')
    .select('slug')
    .where('bot_id', '=', bot_id)
    .executeTakeFirst();
  const bot = named?.slug ?? bot_id;
  const events = `events 1 to ${last} of bot ${bot} are archived`;
  return new ServiceError('archived', where === undefined ? events : `${events}: ${where}`, {
    remedy: `Restore the month and all later ones with \`service-local events restore ${bot} --month ${month ?? 'YYYY-MM'}\` on the server's machine.`,
  });
}
