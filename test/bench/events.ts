import Database from 'better-sqlite3';
import { v7 as newId } from 'uuid';
import { appendEvents } from '../../src/events/append.ts';
import type { NewEvent } from '../../src/events/event.ts';
import { readEvents } from '../../src/events/read-events.ts';
import { stateAt } from '../../src/events/snapshot.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import type { BotEventsTable } from '../../src/storage/tables.ts';
import { addBot, CREATED } from '../events/bots.ts';
import { newDatabase } from '../storage/databases.ts';
import { figure, median, round, type Figure } from './figure.ts';

const GOAL = { atLeast: 0.5 };
const NOW = CREATED.occurred_at;
const ROUNDS = 9;
/** Of events, or pages of them. */
const BATCH = 500;

/** A fill as the engine tells of it; one event in a hundred changes the state. */
function fillOf(n: number): NewEvent {
  if (n % 100 === 99) return { ...CREATED, kind: 'bot.updated', payload: { name: `SMA ${n}` } };
  const amounts = { quantity: 12.5, price: 4321.25, reference: 4320.5, fee: 0.61, slippage: 0.2 };
  const payload = {
    order: n,
    symbol: 'SPX',
    side: 'buy',
    ...amounts,
    position: 25,
    cash: 91_234.5,
  };
  const run_id = '019b7d0e-0000-7000-8000-000000000000';
  return { kind: 'order.filled', version: 1, occurred_at: NOW + n, run_id, payload };
}

const fills = (count: number): NewEvent[] => Array.from({ length: count }, (_, n) => fillOf(n));

/** Events in SQLite, against bare statements on the same rows in a database that is just like it. */
export async function events(): Promise<Figure[]> {
  const database = await newDatabase('sqlite');
  const bare = await newDatabase('sqlite');
  const storage = await openStorage(database.location);
  await (await openStorage(bare.location)).close();
  const floor = openBare(bare.location as { readonly file: string });
  const reader = new Database((database.location as { readonly file: string }).file);
  try {
    return [
      await appends(storage, reader, floor, 1, 100),
      await appends(storage, reader, floor, 10, 100),
      await appends(storage, reader, floor, 1000, 10),
      ...(await reads(storage, reader)),
      await states(storage),
    ];
  } finally {
    reader.close();
    floor.close();
    await storage.close();
    await database.remove();
    await bare.remove();
  }
}

/** As durable as the storage. */
function openBare({ file }: { readonly file: string }): Database.Database {
  const database = new Database(file);
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'secure_delete = ON']) {
    database.pragma(pragma);
  }
  return database;
}

/** With so many events after its creation. */
async function fill(storage: Storage, bot_id: string, count: number): Promise<void> {
  await storage.write(async (tx) => {
    await addBot(tx, bot_id);
    await appendEvents(tx, bot_id, NOW, [CREATED]);
  });
  for (let done = 0; done < count; done += BATCH) {
    await storage.write((tx) => appendEvents(tx, bot_id, NOW, fills(BATCH)));
  }
}

const COLUMNS =
  'bot_id, seq, event_id, version, run_id, kind, occurred_at, recorded_at, causation_id, payload, prev_hash, hash';

/** So many batches, one after the other, each of them a commit. */
async function appends(
  storage: Storage,
  reader: Database.Database,
  floor: Database.Database,
  size: number,
  batches: number,
): Promise<Figure> {
  const bot = newId();
  await fill(storage, bot, 0);
  const select = reader.prepare<[string, number], BotEventsTable>(
    `select ${COLUMNS} from bot_events where bot_id = ? and seq > ? order by seq`,
  );
  const insert = floor.prepare(
    `insert into bot_events (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertAll = floor.transaction((rows: readonly unknown[][]) => {
    for (const row of rows) insert.run(row);
  });
  const times = { ours: [] as number[], floor: [] as number[] };
  let seq = 1;
  for (let i = 0; i <= ROUNDS; i += 1) {
    const written = Array.from({ length: batches }, () => fills(size));
    const ours = await timeOf(async () => {
      for (const some of written) {
        await storage.write((tx) => appendEvents(tx, bot, NOW, some));
      }
    });
    const rows = select.all(bot, seq).map((row) => Object.values(row) as unknown[]);
    seq += rows.length;
    const parts = written.map((_, k) => rows.slice(k * size, (k + 1) * size));
    const bare = await timeOf(() => {
      for (const part of parts) insertAll(part);
    });
    // The first round is for compiling.
    if (i > 0) {
      times.ours.push(ours);
      times.floor.push(bare);
    }
  }
  return compare(`append of events, batches of ${size}`, times, size * batches);
}

/** All of a log: its events as they are asked for, and as they are checked and folded on the way. */
async function reads(storage: Storage, reader: Database.Database): Promise<Figure[]> {
  const bot = newId();
  const count = 50_000;
  await fill(storage, bot, count);
  const select = reader.prepare<[string, number, number], BotEventsTable>(
    `select ${COLUMNS} from bot_events where bot_id = ? and seq > ? order by seq limit ?`,
  );
  const works = {
    async read() {
      for (let after_seq = 0; after_seq < count; after_seq += BATCH) {
        await readEvents(storage.read, bot, { after_seq, limit: BATCH });
      }
    },
    floor() {
      for (let after_seq = 0; after_seq < count; after_seq += BATCH) {
        for (const row of select.all(bot, after_seq, BATCH)) JSON.parse(row.payload);
      }
    },
    replay: () => verifyEvents(storage.read, bot),
  };
  const times = { read: [] as number[], floor: [] as number[], replay: [] as number[] };
  for (let i = 0; i <= ROUNDS; i += 1) {
    for (const name of ['read', 'floor', 'replay'] as const) {
      const ms = await timeOf(works[name]);
      if (i > 0) times[name].push(ms);
    }
  }
  const { floor } = times;
  return [
    compare(`read of events, pages of ${BATCH}`, { ours: times.read, floor }, count),
    compare('replay of events, each hash checked', { ours: times.replay, floor }, count),
  ];
}

function compare(
  what: string,
  times: Readonly<Record<'ours' | 'floor', readonly number[]>>,
  count: number,
): Figure {
  const ratio = median(times.ours.map((ours, i) => times.floor[i]! / ours));
  const text = (of: readonly number[]): string => `${round(count / median(of))} k/s`;
  return figure(what, [text(times.floor), text(times.ours)], ratio, GOAL);
}

/**
 * At places all over a long log, and in many short ones: so the pages of both are seldom in memory,
 * and only the length of the log makes the difference.
 */
async function states(storage: Storage): Promise<Figure> {
  const [short, long] = [1000, 1_000_000];
  const bots = Array.from({ length: 200 }, () => newId());
  for (const bot of bots) await fill(storage, bot, short);
  const old = newId();
  await fill(storage, old, long);
  const times = { short: [] as number[], long: [] as number[] };
  for (const [i, bot] of bots.entries()) {
    const place = (i * 0.618) % 1;
    const state = (of: string, length: number) => () =>
      stateAt(storage.read, of, { seq: 1 + Math.floor(place * length) });
    times.short.push(await timeOf(state(bot, short)));
    times.long.push(await timeOf(state(old, long)));
  }
  const [floor, ours] = [median(times.short), median(times.long)];
  const what = 'state of a bot with 1 M events, against one with 1 k';
  const text = (ms: number): string => `${round(ms)} ms`;
  return figure(what, [text(floor), text(ours)], ours / floor, { atMost: 2 });
}

async function timeOf(work: () => unknown): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}
