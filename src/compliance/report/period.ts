import { sql } from 'kysely';
import { ServiceError } from '../../base/errors.ts';
import { seqAt } from '../../events/snapshot.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';

export function formatInstant(ms: number): string {
  return new Date(ms).toISOString();
}

/** A calendar year, up to now if it is not over. */
export interface Period {
  readonly year: number;
  /** Milliseconds since the Unix epoch; `to` is exclusive. */
  readonly from: number;
  readonly to: number;
  readonly isOver: boolean;
}

/**
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `invalid_request` for a year that has not begun.
 */
export function periodOf(year: number | undefined, now: number): Period {
  const asked = year ?? new Date(now).getUTCFullYear();
  const from = Date.UTC(asked, 0);
  const end = Date.UTC(asked + 1, 0);
  if (from > now) {
    const message = `the year ${asked} has not begun`;
    throw new ServiceError('invalid_request', message, {
      problems: [{ code: 'invalid_value', message, pointer: '/year' }],
    });
  }
  return { year: asked, from, to: Math.min(end, now + 1), isOver: end <= now };
}

/** The events with `after_seq` < `seq` ≤ `through_seq`. */
export interface SeqRange {
  readonly after_seq: number;
  readonly through_seq: number;
}

/** Finds the events that were recorded in a period; recording times grow with `seq`. */
export async function rangeOf(db: Db, bot_id: string, { from, to }: Period): Promise<SeqRange> {
  return {
    after_seq: await findLastSeq(db, bot_id, from),
    through_seq: await findLastSeq(db, bot_id, to),
  };
}

/** Returns the `seq` of the newest event recorded before `time` (ms since epoch); 0 without events. */
export async function findLastSeq(db: Db, bot_id: string, time: number): Promise<number> {
  try {
    return (await seqAt(db, bot_id, { at: time - 1 })).seq;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'not_found') return 0;
    throw error;
  }
}

export interface EventCount {
  readonly kind: string;
  readonly run_id: string | null;
  /** Null unless an order was denied or rejected. */
  readonly reason: string | null;
  readonly count: number;
}

/** SQLite blocks the server's thread while it reads; this number of events takes about 10 ms. */
const EVENTS_AT_ONCE = 8192;

/** Counts the events of each kind, run and reason, in pages between which other work continues. */
export async function countEvents(
  storage: Storage,
  bot_id: string,
  { after_seq, through_seq }: SeqRange,
  atOnce = EVENTS_AT_ONCE,
): Promise<EventCount[]> {
  const counts = new Map<string, EventCount>();
  // A payload that was tampered with may not be JSON; the event still counts.
  const reasonIn =
    storage.kind === 'sqlite'
      ? sql`case when json_valid(payload) then json_extract(payload, '$.reason') end`
      : sql`substring(payload from '"reason":"([a-z0-9_]+)"')`;
  const reason = sql<
    string | null
  >`case when kind in ('order.denied', 'order.rejected') then ${reasonIn} end`;
  for (let after = after_seq; after < through_seq; after += atOnce) {
    const rows = await storage.read
      .selectFrom('bot_events')
      .select(['kind', 'run_id', reason.as('reason')])
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('bot_id', '=', bot_id)
      .where('seq', '>', after)
      .where('seq', '<=', Math.min(after + atOnce, through_seq))
      .groupBy(['kind', 'run_id', reason])
      .execute();
    for (const row of rows) {
      const key = JSON.stringify([row.kind, row.run_id, row.reason]);
      const before = counts.get(key)?.count ?? 0;
      counts.set(key, { ...row, count: before + row.count });
    }
    await new Promise(setImmediate);
  }
  return [...counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
}
