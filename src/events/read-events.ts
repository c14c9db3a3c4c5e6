import type { ChainHead } from '../base/hash-chain.ts';
import { sql, type AliasedExpression } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import { prepareRowsQuery } from '../storage/prepare-rows-query.ts';
import type { BotEventsTable, Db } from '../storage/tables.ts';
import {
  archivedEventError,
  archivedRunError,
  readArchiveHead,
} from './archive/archived-events.ts';
import { eventOf, type BotEvent } from './event.ts';
import { readPackedBars } from './packed-bar-rows.ts';
import { BARS, STATE } from './packed-bars.ts';

export interface EventsRequest {
  /** Only events after this one; 0 for all. */
  readonly after_seq: number;
  readonly until_seq?: number | undefined;
  /** Only these kinds, at most 100; all kinds if empty. */
  readonly kinds?: readonly string[] | undefined;
  readonly run_id?: string | undefined;
  readonly limit: number;
  /** Returns the last `limit` events instead of the first, still in order of `seq`. */
  readonly last?: boolean;
}

/** Events of a bot, and the head of the log at the same moment. */
export interface EventsPage {
  readonly events: readonly BotEvent[];
  readonly head: ChainHead;
  /**
   * With `last`: the last archived event, if the page may lack events up to it; otherwise 0.
   */
  readonly archived_seq: number;
}

/**
 * @throws ServiceError `not_found` if the bot does not exist; `archived` if the range begins with
 *   archived events, except with `last`.
 */
export async function readEvents(
  db: Db,
  bot_id: string,
  request: EventsRequest,
): Promise<EventsPage> {
  const { rows, ...page } = await readRows(db, bot_id, request);
  return { ...page, events: rows.map(eventOf) };
}

/** Stored rows, and the rest of an `EventsPage`. */
export interface RowsPage extends Omit<EventsPage, 'events'> {
  readonly rows: readonly BotEventsTable[];
}

/**
 * Reads stored rows, including rows that someone added after the head.
 * @throws ServiceError as `readEvents`
 */
export async function readRows(
  db: Db,
  bot_id: string,
  {
    after_seq,
    until_seq = Number.MAX_SAFE_INTEGER,
    kinds = [],
    run_id,
    limit,
    last,
  }: EventsRequest,
): Promise<RowsPage> {
  const asked = { bot_id, after_seq, until_seq, limit };
  const range = run_id === undefined ? asked : await withinRun(db, asked, run_id);
  const order = last ? 'desc' : 'asc';
  const found = await select(db, range, kinds, order);
  const { head_seq: seq, head_hash: hash } = found[0] ?? { head_seq: null, head_hash: null };
  if (seq === null || hash === null) throw unknownBot(bot_id);
  const head = { seq, hash };
  const whole = found.filter(isEvent);
  const rows = await withPackedBars(db, { ...range, kinds }, order, whole, head);
  if (order === 'asc') {
    if (!isGapless(rows, range)) await refuseArchivedRange(db, range);
    return { rows, head, archived_seq: 0 };
  }
  const { seq: archived_seq } = await readArchiveHead(db, bot_id);
  const later = rows.filter((row) => row.seq > archived_seq);
  const mayBeArchived = range.after_seq < archived_seq || range.after_seq === UNKNOWN_RUN;
  const isShort = later.length < limit && mayBeArchived;
  return { rows: later, head, archived_seq: isShort ? archived_seq : 0 };
}

/** Whether the rows are all events from the start of the range, so that none of them is archived. */
function isGapless(rows: readonly BotEventsTable[], { after_seq }: Range): boolean {
  return rows.length > 0 && rows.at(-1)!.seq === after_seq + rows.length;
}

/**
 * Runs after the rows were read: the archive may have moved while they were read.
 * @throws ServiceError `archived`
 */
async function refuseArchivedRange(
  db: Db,
  { bot_id, after_seq, until_seq, run_id }: Range,
): Promise<void> {
  const archived = await readArchiveHead(db, bot_id);
  if (archived.seq === 0) return;
  if (after_seq === UNKNOWN_RUN) throw await archivedRunError(db, bot_id, run_id!);
  if (until_seq <= after_seq) return;
  if (after_seq < archived.seq) throw await archivedEventError(db, bot_id, after_seq + 1);
}

/**
 * Adds the packed events of a page. They were committed before the page was read, since none of them
 * is later than its head.
 */
async function withPackedBars(
  db: Db,
  range: Range & { readonly kinds: readonly string[] },
  order: Order,
  rows: readonly BotEventsTable[],
  head: ChainHead,
): Promise<readonly BotEventsTable[]> {
  const { kinds, limit } = range;
  if (kinds.length > 0 && !kinds.includes(BARS) && !kinds.includes(STATE)) return rows;
  let after_seq = range.after_seq;
  let until_seq = Math.min(range.until_seq, head.seq);
  if (rows.length === limit && order === 'asc') until_seq = Math.min(until_seq, rows.at(-1)!.seq);
  if (rows.length === limit && order === 'desc') after_seq = Math.max(after_seq, rows[0]!.seq - 1);
  if (until_seq <= after_seq) return rows;
  const packed = await readPackedBars(db, { ...range, after_seq, until_seq }, order);
  if (packed.length === 0) return rows;
  const all = [...rows, ...packed].sort((a, b) => a.seq - b.seq);
  return order === 'asc' ? all.slice(0, limit) : all.slice(-limit);
}

/** Without events, the join returns one row that holds only the head. */
function isEvent<T extends { seq: number | null }>(row: T): row is T & BotEventsTable {
  return row.seq !== null;
}

interface Range {
  readonly bot_id: string;
  readonly after_seq: number;
  readonly until_seq: number;
  readonly limit: number;
  readonly run_id?: string;
}

/** Start of the range of a run whose first event is not in the database. */
const UNKNOWN_RUN = Number.MAX_SAFE_INTEGER - 1;

/** Narrows the range to the run; events of other runs may lie in between. */
async function withinRun(db: Db, range: Range, run_id: string): Promise<Range> {
  const ends = new Map((await selectEnds(db, { run_id })).map(({ kind, seq }) => [kind, seq]));
  return {
    ...range,
    run_id,
    after_seq: Math.max(range.after_seq, (ends.get('run.queued') ?? UNKNOWN_RUN + 1) - 1),
    until_seq: Math.min(range.until_seq, ends.get('run.ended') ?? range.until_seq),
  };
}

const selectEnds = prepareQuery((db, { run_id }: { readonly run_id: string }) =>
  db
    .selectFrom('bot_events')
    .select(['kind', 'seq'])
    .where('run_id', '=', run_id)
    // Must match the condition of the partial index.
    .where(sql<boolean>`kind in ('run.queued', 'run.ended')`),
);

/** Whether `limit` keeps the first or the last events. */
type Order = 'asc' | 'desc';

// Each read is one statement, because another server may append between two statements.
async function select(db: Db, range: Range, kinds: readonly string[], order: Order) {
  const { bot_id, run_id } = range;
  if (kinds.length > 0) {
    return withHead(db, bot_id, ofKinds(db, range, kinds, order).as('event')).execute();
  }
  if (order === 'desc' || run_id !== undefined) {
    return withHead(db, bot_id, inRange(db, range, order).as('event')).execute();
  }
  const events = await selectRange(db, range);
  return events.length > 0 ? events : selectHeadAndRange(db, range);
}

/** A third faster than the join, but returns no head if the range has no events. */
const selectRange = prepareQuery((db, range: Range) =>
  inRange(db, range).select((event) => {
    const bot = event.selectFrom('bots').where('bots.bot_id', '=', range.bot_id);
    return [bot.select('event_seq').as('head_seq'), bot.select('event_hash').as('head_hash')];
  }),
);

const selectHeadAndRange = prepareQuery((db, range: Range) =>
  withHead(db, range.bot_id, inRange(db, range).as('event')),
);

function inRange(
  db: Db,
  { bot_id, after_seq, until_seq, limit, run_id }: Range,
  order: Order = 'asc',
) {
  return db
    .selectFrom('bot_events')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('seq', '>', after_seq)
    .where('seq', '<=', until_seq)
    .$if(run_id !== undefined, (query) => query.where('run_id', '=', run_id!))
    .orderBy('seq', order)
    .limit(limit);
}

/** Queries each kind separately; a single query would read and sort all events of these kinds. */
function ofKinds(db: Db, range: Range, kinds: readonly string[], order: Order) {
  const all = [...new Set(kinds)]
    .map((kind) => db.selectFrom(ofKind(db, range, kind, order).as('of_kind')).selectAll())
    .reduce((before, one) => before.unionAll(one));
  return db.selectFrom(all.as('of_kinds')).selectAll().orderBy('seq', order).limit(range.limit);
}

/** Compares (kind, seq) as a tuple, so that databases use the index and skip other kinds. */
function ofKind(
  db: Db,
  { bot_id, after_seq, until_seq, limit, run_id }: Range,
  kind: string,
  order: Order,
) {
  return db
    .selectFrom('bot_events')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where((eb) => eb(eb.refTuple('kind', 'seq'), '>', eb.tuple(kind, after_seq)))
    .where((eb) => eb(eb.refTuple('kind', 'seq'), '<=', eb.tuple(kind, until_seq)))
    .$if(run_id !== undefined, (query) => query.where('run_id', '=', run_id!))
    .orderBy('kind', order)
    .orderBy('seq', order)
    .limit(limit);
}

function withHead(db: Db, bot_id: string, events: AliasedExpression<BotEventsTable, 'event'>) {
  return db
    .selectFrom('bots')
    .leftJoin(events, (join) => join.onTrue())
    .select(['bots.event_seq as head_seq', 'bots.event_hash as head_hash'])
    .selectAll('event')
    .where('bots.bot_id', '=', bot_id)
    .orderBy('event.seq');
}

/**
 * Reads the hash of an event, which may be the last archived one.
 *
 * @returns undefined if the log has no such event.
 * @throws ServiceError `archived` for an earlier event.
 */
export async function readLink(
  db: Db,
  bot_id: string,
  seq: number,
): Promise<ChainHead | undefined> {
  const archived = await readArchiveHead(db, bot_id);
  if (archived.seq === seq) return seq === 0 ? undefined : archived;
  const one = { after_seq: seq - 1, until_seq: seq, limit: 1 };
  const [row] = (await readRows(db, bot_id, one)).rows;
  return row && { seq: row.seq, hash: row.hash };
}

/** The last event of a log, and its recording time. */
export interface TimedHead extends ChainHead {
  /** 0 before the first event. */
  readonly recorded_at: number;
  /** The last archived event; 0 if none is archived. */
  readonly archived_seq: number;
}

/** @throws ServiceError `not_found` if the bot does not exist. */
export async function readHead(db: Db, bot_id: string): Promise<TimedHead> {
  const [head] = await selectHead(db, { bot_id });
  if (head === undefined) throw unknownBot(bot_id);
  return timedHead(head);
}

function timedHead<Head extends { [Key in 'recorded_at' | 'archived_seq']: number | null }>(
  head: Head,
) {
  return { ...head, recorded_at: head.recorded_at ?? 0, archived_seq: head.archived_seq ?? 0 };
}

const selectHead = prepareQuery((db, { bot_id }: { readonly bot_id: string }) =>
  db
    .selectFrom('bots')
    .leftJoin('bot_events as last', (join) =>
      join.onRef('last.bot_id', '=', 'bots.bot_id').onRef('last.seq', '=', 'bots.event_seq'),
    )
    .leftJoin('bot_numbers', 'bot_numbers.bot_id', 'bots.bot_id')
    .leftJoin('packed_bars as packed', (join) =>
      join
        .onRef('packed.bot_no', '=', 'bot_numbers.bot_no')
        .onRef('packed.seq', '=', 'bots.event_seq'),
    )
    .leftJoin('bot_event_heads as archived', 'archived.bot_id', 'bots.bot_id')
    .select('archived.seq as archived_seq')
    .select(['bots.event_seq as seq', 'bots.event_hash as hash'])
    .select(({ fn }) => fn.coalesce('last.recorded_at', 'packed.recorded_at').as('recorded_at'))
    .where('bots.bot_id', '=', bot_id),
);

/** Heads of many bots; unknown bots are left out. */
export async function readHeads(
  db: Db,
  bot_ids: readonly string[],
): Promise<(TimedHead & { readonly bot_id: string })[]> {
  const heads = await selectHeads(
    db,
    bot_ids.map((bot_id) => ({ bot_id })),
  );
  return heads.map(timedHead);
}

const selectHeads = prepareRowsQuery({ bot_id: 'text' }, (db, given) =>
  db
    .selectFrom(given.as('given'))
    .innerJoin('bots', 'bots.bot_id', 'given.bot_id')
    .leftJoin('bot_events as last', (join) =>
      join.onRef('last.bot_id', '=', 'bots.bot_id').onRef('last.seq', '=', 'bots.event_seq'),
    )
    .leftJoin('bot_numbers', 'bot_numbers.bot_id', 'bots.bot_id')
    .leftJoin('packed_bars as packed', (join) =>
      join
        .onRef('packed.bot_no', '=', 'bot_numbers.bot_no')
        .onRef('packed.seq', '=', 'bots.event_seq'),
    )
    .leftJoin('bot_event_heads as archived', 'archived.bot_id', 'bots.bot_id')
    .select('archived.seq as archived_seq')
    .select(['bots.bot_id', 'bots.event_seq as seq', 'bots.event_hash as hash'])
    .select(({ fn }) => fn.coalesce('last.recorded_at', 'packed.recorded_at').as('recorded_at')),
);

export function unknownBot(bot_id: string): ServiceError {
  return new ServiceError('not_found', `there is no bot ${JSON.stringify(bot_id)}`, {
    remedy: 'List the bots with `service-local bots list`.',
  });
}
