import { randomUUID } from 'node:crypto';
import { prepared } from '../storage/prepared.ts';
import type { BotEventsTable, Db } from '../storage/tables.ts';
import { hashOf, type EventHead, type NewEvent } from './event.ts';
import { readHead, type TimedHead } from './read.ts';
import { takeSnapshot } from './snapshot.ts';

/** So many events apart, or as many as were appended at once. */
const SNAPSHOT_EVERY = 1000;

/**
 * Adds to the log of a bot, in order. It belongs into the same write as the effect: neither is there
 * without the other. Two calls within one write must not overlap.
 *
 * @param now milliseconds since the Unix epoch.
 * @returns the last event of the log.
 * @throws ServiceError `not_found` when there is no such bot.
 */
export async function appendEvents(
  tx: Db,
  bot_id: string,
  now: number,
  events: readonly NewEvent[],
): Promise<EventHead> {
  const heads = headsIn(tx);
  const before = heads.get(bot_id) ?? (await readHead(tx, bot_id));
  if (before.seq === 0 && events[0]?.kind !== 'bot.created') {
    throw new RangeError('the first event of a bot is bot.created');
  }
  // A clock that is set back must not put an event before another that was there first.
  const recorded_at = Math.max(now, before.recorded_at);
  const newId = idsOf(recorded_at);
  let { seq, hash: prev_hash } = before;
  const rows = events.map((event) => {
    seq += 1;
    const row = rowOf(event, { bot_id, seq, event_id: newId(), recorded_at, prev_hash });
    prev_hash = row.hash;
    return row;
  });
  await insertRows(tx, rows);
  const head = { seq, hash: prev_hash, recorded_at };
  await updateHead(tx, { bot_id, seq, hash: prev_hash });
  heads.set(bot_id, head);
  const isDue = Math.floor(seq / SNAPSHOT_EVERY) > Math.floor(before.seq / SNAPSHOT_EVERY);
  if (isDue) await takeSnapshot(tx, bot_id);
  return { seq, hash: prev_hash };
}

/** What has been added in transactions that are not over; nobody else can add to it meanwhile. */
const open = new WeakMap<Db, Map<string, TimedHead>>();

function headsIn(tx: Db): Map<string, TimedHead> {
  let heads = open.get(tx);
  if (heads === undefined) {
    heads = new Map();
    open.set(tx, heads);
  }
  return heads;
}

const updateHead = prepared((db, { bot_id, seq, hash }: EventHead & { readonly bot_id: string }) =>
  db.updateTable('bots').set({ event_seq: seq, event_hash: hash }).where('bot_id', '=', bot_id),
);

const KIND = /^[a-z_]+(\.[a-z_]+)*$/;

type Place = Pick<BotEventsTable, 'bot_id' | 'seq' | 'event_id' | 'recorded_at' | 'prev_hash'>;

function rowOf(event: NewEvent, place: Place): BotEventsTable {
  const { kind, version, occurred_at, run_id = null, causation_id = null } = event;
  if (!KIND.test(kind)) throw new RangeError(`${kind}: no kind of event`);
  if (!isTime(occurred_at)) throw new RangeError(`${occurred_at}: no time of an event`);
  const payload = JSON.stringify(event.payload);
  const row = { ...place, version, run_id, kind, occurred_at, causation_id, payload, hash: '' };
  row.hash = hashOf(row);
  return row;
}

function isTime(ms: number): boolean {
  return Number.isInteger(ms) && Math.abs(ms) <= 8.64e15;
}

/** Makes UUIDs of version 7 (RFC 9562): of version 4, with the time instead of their first 48 bits. */
function idsOf(now: number): () => string {
  const hex = now.toString(16).padStart(12, '0');
  const start = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
  return () => start + randomUUID().slice(start.length);
}

const COLUMNS = [
  'bot_id',
  'seq',
  'event_id',
  'version',
  'run_id',
  'kind',
  'occurred_at',
  'recorded_at',
  'causation_id',
  'payload',
  'prev_hash',
  'hash',
] as const satisfies readonly (keyof BotEventsTable)[];

/** Each inserts twice as many rows as the one before: so few serve any number of rows. */
const INSERTS = Array.from({ length: 8 }, (_, power) =>
  prepared((db, values: readonly unknown[]) =>
    db.insertInto('bot_events').values(
      Array.from({ length: 2 ** power }, (_row, row) => {
        const cells = COLUMNS.map((name, i) => [name, values[row * COLUMNS.length + i]]);
        return Object.fromEntries(cells) as BotEventsTable;
      }),
    ),
  ),
);

async function insertRows(tx: Db, rows: readonly BotEventsTable[]): Promise<void> {
  let done = 0;
  while (done < rows.length) {
    const power = Math.min(Math.floor(Math.log2(rows.length - done)), INSERTS.length - 1);
    const values: unknown[] = [];
    for (const end = done + 2 ** power; done < end; done += 1) {
      const row = rows[done]!;
      for (const name of COLUMNS) values.push(row[name]);
    }
    await INSERTS[power]!(tx, values);
  }
}
