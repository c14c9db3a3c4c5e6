import type { AliasedExpression } from 'kysely';
import { ServiceError } from '../errors.ts';
import { prepared } from '../storage/prepared.ts';
import type { BotEventsTable, Db } from '../storage/tables.ts';
import { eventOf, type BotEvent, type EventHead } from './event.ts';

export interface EventsRequest {
  /** Those after it; 0 for all from the first. */
  readonly after_seq: number;
  /** None after it. */
  readonly until_seq?: number | undefined;
  /** Only these, at most 100 of them; all where none is named. */
  readonly kinds?: readonly string[] | undefined;
  /** At most so many events. */
  readonly limit: number;
}

/** Part of the log of a bot, and the head of the log at the same moment. */
export interface EventsPage {
  /** In order of `seq`. */
  readonly events: readonly BotEvent[];
  readonly head: EventHead;
}

/** @throws ServiceError `not_found` when there is no such bot. */
export async function readEvents(
  db: Db,
  bot_id: string,
  request: EventsRequest,
): Promise<EventsPage> {
  const { rows, head } = await readRows(db, bot_id, request);
  return { events: rows.map(eventOf), head };
}

/** The same as it is stored, and rows after the head, too, if somebody put some there. */
export async function readRows(
  db: Db,
  bot_id: string,
  { after_seq, until_seq = Number.MAX_SAFE_INTEGER, kinds = [], limit }: EventsRequest,
): Promise<{ readonly rows: readonly BotEventsTable[]; readonly head: EventHead }> {
  const range = { bot_id, after_seq, until_seq, limit };
  const found =
    kinds.length === 0
      ? await selectRange(db, range)
      : await withHead(db, bot_id, ofKinds(db, range, kinds).as('event')).execute();
  const [first] = found;
  if (first === undefined) throw unknownBot(bot_id);
  return {
    rows: found.filter(isEvent),
    head: { seq: first.head_seq, hash: first.head_hash },
  };
}

/** The head stands alone where there is no event. */
function isEvent<T extends { seq: number | null }>(row: T): row is T & BotEventsTable {
  return row.seq !== null;
}

interface Range {
  readonly bot_id: string;
  readonly after_seq: number;
  readonly until_seq: number;
  readonly limit: number;
}

const selectRange = prepared((db, range: Range) =>
  withHead(db, range.bot_id, inRange(db, range).as('event')),
);

function inRange(db: Db, { bot_id, after_seq, until_seq, limit }: Range) {
  return db
    .selectFrom('bot_events')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('seq', '>', after_seq)
    .where('seq', '<=', until_seq)
    .orderBy('seq')
    .limit(limit);
}

/** Each kind by itself: together, all that there is of them would be read and sorted. */
function ofKinds(db: Db, range: Range, kinds: readonly string[]) {
  const all = [...new Set(kinds)]
    .map((kind) => db.selectFrom(ofKind(db, range, kind).as('of_kind')).selectAll())
    .reduce((before, one) => before.unionAll(one));
  return db.selectFrom(all.as('of_kinds')).selectAll().orderBy('seq').limit(range.limit);
}

/** By pairs, as the index has them: else databases may go by `seq` and read all other kinds, too. */
function ofKind(db: Db, { bot_id, after_seq, until_seq, limit }: Range, kind: string) {
  return db
    .selectFrom('bot_events')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where((eb) => eb(eb.refTuple('kind', 'seq'), '>', eb.tuple(kind, after_seq)))
    .where((eb) => eb(eb.refTuple('kind', 'seq'), '<=', eb.tuple(kind, until_seq)))
    .orderBy('kind')
    .orderBy('seq')
    .limit(limit);
}

// One statement: between two of them another server may append.
function withHead(db: Db, bot_id: string, events: AliasedExpression<BotEventsTable, 'event'>) {
  return db
    .selectFrom('bots')
    .leftJoin(events, (join) => join.onTrue())
    .select(['bots.event_seq as head_seq', 'bots.event_hash as head_hash'])
    .selectAll('event')
    .where('bots.bot_id', '=', bot_id)
    .orderBy('event.seq');
}

/** The last event of a log, and when it was recorded. */
export interface TimedHead extends EventHead {
  /** 0 before the first event. */
  readonly recorded_at: number;
}

/** @throws ServiceError `not_found` when there is no such bot. */
export async function readHead(db: Db, bot_id: string): Promise<TimedHead> {
  const [head] = await selectHead(db, { bot_id });
  if (head === undefined) throw unknownBot(bot_id);
  return { ...head, recorded_at: head.recorded_at ?? 0 };
}

const selectHead = prepared((db, { bot_id }: { readonly bot_id: string }) =>
  db
    .selectFrom('bots')
    .leftJoin('bot_events as last', (join) =>
      join.onRef('last.bot_id', '=', 'bots.bot_id').onRef('last.seq', '=', 'bots.event_seq'),
    )
    .select(['bots.event_seq as seq', 'bots.event_hash as hash', 'last.recorded_at'])
    .where('bots.bot_id', '=', bot_id),
);

export function unknownBot(bot_id: string): ServiceError {
  return new ServiceError('not_found', `there is no bot ${JSON.stringify(bot_id)}`, {
    remedy: 'See `service-local bots list`.',
  });
}
