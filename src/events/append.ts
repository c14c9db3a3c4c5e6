import type { ChainHead } from '../base/hash-chain.ts';
import { randomUUID } from 'node:crypto';
import { sql, type DialectAdapter } from 'kysely';
import { prepareChange } from '../storage/prepare-query.ts';
import { isPostgres, prepareInsert, prepareRowsQuery } from '../storage/prepare-rows-query.ts';
import { prepareSharedInsert, shareQuery } from '../storage/share-query.ts';
import type { BotEventsTable, Db } from '../storage/tables.ts';
import {
  CLOCK_SET_BACK,
  isClockSetBack,
  recordingTime,
  clockSetBackEvents,
} from './clock-steps.ts';
import { hashOf, type NewEvent } from './event.ts';
import { notifyAlert } from './raised-alerts.ts';
import { storePackedBars, type Packing } from './packed-bar-rows.ts';
import { isPackable, packedEventId } from './packed-bars.ts';
import { readHead, readHeads, unknownBot, type TimedHead } from './read-events.ts';
import { takeSnapshot } from './snapshot.ts';

/** A snapshot is taken each time the log passes a multiple of this sequence number. */
const SNAPSHOT_EVERY = 1000;

/**
 * Appends events to the log of a bot, in order, after any events that record that the clock was set
 * back. Call it in the transaction that makes the change, so that the change and its events are
 * committed together. Calls within one transaction must not overlap.
 *
 * @param now milliseconds since the Unix epoch.
 * @returns the last event of the log.
 * @throws ServiceError `not_found` if the bot does not exist.
 */
export async function appendEvents(
  tx: Db,
  bot_id: string,
  now: number,
  events: readonly NewEvent[],
): Promise<ChainHead> {
  return append(tx, { bot_id, events }, now, async (rows) => rows);
}

/** Like `appendEvents`, but packs the events of bars; reading them returns the same events. */
export async function appendSessionEvents(
  tx: Db,
  bot_id: string,
  now: number,
  events: readonly NewEvent[],
): Promise<ChainHead> {
  return append(tx, { bot_id, events }, now, (rows, packing) => storePackedBars(tx, rows, packing));
}

type Pack = (
  rows: readonly BotEventsTable[],
  packing: Packing,
) => Promise<readonly BotEventsTable[]>;

/** @param packSome returns the rows that it has not stored. */
async function append(
  tx: Db,
  { bot_id, events }: LogEntries,
  now: number,
  packSome: Pack,
): Promise<ChainHead> {
  if (events.length === 0) return readHead(tx, bot_id);
  const heads = cachedHeads(tx);
  let before: CachedHead = heads.get(bot_id) ?? (await readHead(tx, bot_id));
  // If the append fails halfway, `packing` may not match the stored events.
  heads.delete(bot_id);
  let added = buildRows(bot_id, before, now, events);
  if (!(await moveHead(tx, bot_id, before, added.head))) {
    before = await readHead(tx, bot_id);
    added = buildRows(bot_id, before, now, events);
    await moveHead(tx, bot_id, before, added.head);
  }
  const { rows, head } = added;
  const { packing = { bases: new Map() } } = before;
  const unpacked = await packSome(rows, packing);
  if (unpacked.length > 0) await insertRows(tx, unpacked);
  heads.set(bot_id, { ...head, packing });
  notifyOfClock(rows);
  if (isSnapshotDue(before, head)) await takeSnapshot(tx, bot_id);
  return { seq: head.seq, hash: head.hash };
}

/** As long as the head of a log is unchanged, the known facts about its events are valid, too. */
interface CachedHead extends TimedHead {
  readonly packing?: Packing;
}

/** Events for the log of one bot. */
export interface LogEntries {
  readonly bot_id: string;
  readonly events: readonly NewEvent[];
}

/** In a write of many rows, the database inserts these while the next ones are built. */
const ROWS_PER_INSERT = 512;

/**
 * Does what `appendEvents` does, for many bots with few statements.
 *
 * @param logs each with at least one event.
 * @returns the last event of each log, in the order of `logs`.
 * @throws ServiceError `not_found` if one of the bots does not exist.
 */
export async function appendToMany(
  tx: Db,
  now: number,
  logs: readonly LogEntries[],
): Promise<readonly ChainHead[]> {
  const bots = [...new Set(logs.map(({ bot_id }) => bot_id))];
  const before = new Map((await readHeads(tx, bots)).map((head) => [head.bot_id, head]));
  const heads = new Map<string, TimedHead>(before);
  const unknown = bots.find((bot_id) => !heads.has(bot_id));
  if (unknown !== undefined) throw unknownBot(unknown);
  const inserts: Promise<unknown>[] = [];
  let rows: BotEventsTable[] = [];
  const insertBuilt = (): void => {
    const insert = insertMany(tx, rows);
    // It is awaited later, and must not be reported as unhandled before.
    insert.catch(() => {});
    inserts.push(insert);
    notifyOfClock(rows);
    rows = [];
  };
  const ends: ChainHead[] = [];
  for (const { bot_id, events } of logs) {
    const added = buildRows(bot_id, heads.get(bot_id)!, now, events);
    for (const row of added.rows) rows.push(row);
    heads.set(bot_id, added.head);
    ends.push({ seq: added.head.seq, hash: added.head.hash });
    if (rows.length < ROWS_PER_INSERT) continue;
    insertBuilt();
    // At most two inserts wait, and PostgreSQL runs one while the next rows are built.
    await inserts.at(-2);
  }
  insertBuilt();
  await Promise.all([
    ...inserts,
    updateHeads(
      tx,
      bots.map((bot_id) => ({ bot_id, ...heads.get(bot_id)! })),
    ),
  ]);
  const cached = cachedHeads(tx);
  for (const [bot_id, head] of heads) {
    cached.set(bot_id, head);
    if (isSnapshotDue(before.get(bot_id)!, head)) await takeSnapshot(tx, bot_id);
  }
  return ends;
}

/** Builds the rows that follow `before`, and the head of the log after them. */
function buildRows(
  bot_id: string,
  before: TimedHead,
  now: number,
  events: readonly NewEvent[],
): { readonly rows: readonly BotEventsTable[]; readonly head: TimedHead } {
  if (before.seq === 0 && events[0]?.kind !== 'bot.created') {
    throw new RangeError('the first event of a bot must be bot.created');
  }
  const recorded_at = recordingTime(before, now);
  const newId = eventIdsAt(recorded_at);
  let { seq, hash: prev_hash } = before;
  const rows = [...clockEvents(before, now, events), ...events].map((event) => {
    seq += 1;
    const event_id = isPackable(event) ? packedEventId(bot_id, seq, recorded_at) : newId();
    const row = rowOf(event, { bot_id, seq, event_id, recorded_at, prev_hash });
    prev_hash = row.hash;
    return row;
  });
  const { archived_seq } = before;
  return { rows, head: { seq, hash: prev_hash, recorded_at, archived_seq } };
}

function clockEvents(before: TimedHead, now: number, events: readonly NewEvent[]): NewEvent[] {
  const [first] = events;
  if (first === undefined || !isClockSetBack(before, now)) return [];
  return clockSetBackEvents(before, now, first.version);
}

function isSnapshotDue(before: ChainHead, after: ChainHead): boolean {
  return Math.floor(after.seq / SNAPSHOT_EVERY) > Math.floor(before.seq / SNAPSHOT_EVERY);
}

/** Raises an alert for each row that records a clock that was set back. */
function notifyOfClock(rows: readonly BotEventsTable[]): void {
  for (const { kind } of rows) {
    if (kind === CLOCK_SET_BACK) {
      notifyAlert({ control: 'clock_skew', severity: 'critical', latency_ms: 0 });
    }
  }
}

const MAX_CACHED_HEADS = 20_000;

/**
 * Heads as this process last wrote them, by database. Another process may have appended since, or the
 * transaction may have been rolled back, so `moveHead` compares them with the stored heads.
 */
const headsByDatabase = new WeakMap<DialectAdapter, Map<string, CachedHead>>();

function cachedHeads(tx: Db): Map<string, CachedHead> {
  const { adapter } = tx.getExecutor();
  let heads = headsByDatabase.get(adapter);
  if (heads === undefined || heads.size > MAX_CACHED_HEADS) {
    heads = new Map();
    headsByDatabase.set(adapter, heads);
  }
  return heads;
}

/**
 * @returns false, without a change, if the log has another head than `before`, or if its archive has
 *   moved, so that events to which packed rows would refer may be gone.
 */
async function moveHead(
  tx: Db,
  bot_id: string,
  before: TimedHead,
  { seq, hash }: ChainHead,
): Promise<boolean> {
  const { archived_seq } = before;
  const place = { bot_id, before_seq: before.seq, before_hash: before.hash, archived_seq };
  const move = { ...place, seq, hash };
  if (isPostgres(tx)) return (await moveHeads(tx, move)).has(bot_id);
  return (await updateHead(tx, move)) > 0;
}

interface HeadMove extends ChainHead {
  readonly bot_id: string;
  readonly before_seq: number;
  readonly before_hash: string;
  readonly archived_seq: number;
}

const updateHead = prepareChange((db, { bot_id, seq, hash, ...before }: HeadMove) =>
  db
    .updateTable('bots')
    .set({ event_seq: seq, event_hash: hash })
    .where('bot_id', '=', bot_id)
    .where('event_seq', '=', before.before_seq)
    .where('event_hash', '=', before.before_hash)
    .where(
      (of) =>
        of.fn.coalesce(
          of.selectFrom('bot_event_heads').select('seq').where('bot_id', '=', bot_id),
          sql<number>`0`,
        ),
      '=',
      before.archived_seq,
    ),
);

const moveEach = prepareRowsQuery<HeadMove, Pick<BotEventsTable, 'bot_id'>>(
  {
    bot_id: 'text',
    seq: 'bigint',
    hash: 'text',
    before_seq: 'bigint',
    before_hash: 'text',
    archived_seq: 'bigint',
  },
  (db, moves) =>
    db
      .updateTable('bots')
      .from(moves.as('move'))
      .set((of) => ({ event_seq: of.ref('move.seq'), event_hash: of.ref('move.hash') }))
      .whereRef('bots.bot_id', '=', 'move.bot_id')
      .whereRef('event_seq', '=', 'move.before_seq')
      .whereRef('event_hash', '=', 'move.before_hash')
      .whereRef('move.archived_seq', '=', (of) =>
        of.fn.coalesce(
          of.selectFrom('bot_event_heads').select('seq').whereRef('bot_id', '=', 'move.bot_id'),
          sql<number>`0`,
        ),
      )
      .returning('bots.bot_id'),
);

/** Moves the heads of different logs in one statement. @returns bots whose heads have moved. */
const moveHeads = shareQuery(
  async (tx, moves: readonly HeadMove[]) =>
    new Set((await moveEach(tx, moves)).map(({ bot_id }) => bot_id)),
);

const updateHeads = prepareRowsQuery<ChainHead & Pick<BotEventsTable, 'bot_id'>>(
  { bot_id: 'text', seq: 'bigint', hash: 'text' },
  (db, heads) =>
    db
      .updateTable('bots')
      .from(heads.as('head'))
      .set((of) => ({ event_seq: of.ref('head.seq'), event_hash: of.ref('head.hash') }))
      .whereRef('bots.bot_id', '=', 'head.bot_id'),
);

const KIND = /^[a-z_]+(\.[a-z_]+)*$/;

type Place = Pick<BotEventsTable, 'bot_id' | 'seq' | 'event_id' | 'recorded_at' | 'prev_hash'>;

function rowOf(event: NewEvent, place: Place): BotEventsTable {
  const { kind, version, occurred_at, run_id = null, causation_id = null } = event;
  if (!KIND.test(kind)) throw new RangeError(`invalid event kind ${JSON.stringify(kind)}`);
  if (!isTime(occurred_at)) throw new RangeError(`invalid event time ${occurred_at}`);
  const payload = JSON.stringify(event.payload);
  const row = { ...place, version, run_id, kind, occurred_at, causation_id, payload, hash: '' };
  row.hash = hashOf(row);
  return row;
}

function isTime(ms: number): boolean {
  return Number.isInteger(ms) && Math.abs(ms) <= 8.64e15;
}

/** Makes UUIDs of version 7 (RFC 9562): UUIDs of version 4 whose first 48 bits are the time. */
function eventIdsAt(now: number): () => string {
  const hex = now.toString(16).padStart(12, '0');
  const start = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
  return () => start + randomUUID().slice(start.length);
}

const COLUMNS = {
  bot_id: 'text',
  seq: 'bigint',
  event_id: 'text',
  version: 'bigint',
  run_id: 'text',
  kind: 'text',
  occurred_at: 'bigint',
  recorded_at: 'bigint',
  causation_id: 'text',
  payload: 'text',
  prev_hash: 'text',
  hash: 'text',
} as const;

const insertMany = prepareInsert('bot_events', COLUMNS);

export const insertRows = prepareSharedInsert('bot_events', COLUMNS);
