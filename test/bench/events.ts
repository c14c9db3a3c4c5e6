/**
 * `node events.ts append SIZE BATCHES`, `node events.ts read` or `node events.ts replay`: the event log
 * in SQLite against raw prepared statements on a database with the same tables and durability.
 */
import Database from 'better-sqlite3';
import { v7 as newId } from 'uuid';
import { appendEvents } from '../../src/events/append.ts';
import type { NewEvent } from '../../src/events/event.ts';
import { readEvents } from '../../src/events/read-events.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { openStorage } from '../../src/storage/storage.ts';
import type { BotEventsTable } from '../../src/storage/tables.ts';
import { addBot, CREATED } from '../events/bots.ts';
import { newSqlite } from '../storage/databases.ts';
import { alternate, peakMemory, printMeasurement, timeOf, type Pair } from './measurement.ts';

const NOW = CREATED.occurred_at;
const ROUNDS = 9;
/** Events in the log that is read, and in a page of it. */
const LENGTH = 50_000;
const PAGE = 500;

const COLUMNS =
  'bot_id, seq, event_id, version, run_id, kind, occurred_at, recorded_at, causation_id, payload, prev_hash, hash';
const HASH = '0123456789abcdef'.repeat(4);

const [task, ...counts] = process.argv.slice(2);
const ours = await newSqlite();
const bare = await newSqlite();
const storage = await openStorage(ours.location);
await (await openStorage(bare.location)).close();
const bot = newId();
await storage.write(async (tx) => {
  await addBot(tx, bot);
  await appendEvents(tx, bot, NOW, [CREATED]);
});
const measured =
  task === 'append'
    ? await measureAppends(...(counts.map(Number) as [number, number]))
    : await measureReads(task as 'read' | 'replay');
printMeasurement({ pairs: measured, peakBytes: peakMemory() });
await storage.close();
await ours.remove();
await bare.remove();

/** Appends `count` batches of `size` events one after the other, each with a commit. */
async function measureAppends(size: number, count: number): Promise<Pair[]> {
  const database = new Database(bare.location.file);
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'secure_delete = ON']) {
    database.pragma(pragma);
  }
  const insert = database.prepare(
    `insert into bot_events (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertAll = database.transaction((rows: readonly unknown[][]) => {
    for (const row of rows) insert.run(row);
  });
  let seq = 1;
  const pairs = await alternate(ROUNDS, {
    floor() {
      const written = Array.from({ length: count }, () =>
        fills(size).map((event) => rowOf(event, ++seq)),
      );
      return timeOf(() => written.forEach((rows) => insertAll(rows)));
    },
    ours() {
      const written = Array.from({ length: count }, () => fills(size));
      return timeOf(async () => {
        for (const events of written) {
          await storage.write((tx) => appendEvents(tx, bot, NOW, events));
        }
      });
    },
  });
  database.close();
  return pairs;
}

/** Reads a whole log, as its events or to verify each hash. */
async function measureReads(work: 'read' | 'replay'): Promise<Pair[]> {
  for (let done = 0; done < LENGTH; done += PAGE) {
    await storage.write((tx) => appendEvents(tx, bot, NOW, fills(PAGE)));
  }
  const database = new Database(ours.location.file, { readonly: true });
  const select = database.prepare<[string, number, number], BotEventsTable>(
    `select ${COLUMNS} from bot_events where bot_id = ? and seq > ? order by seq limit ?`,
  );
  const readAll = async (): Promise<void> => {
    for (let after_seq = 0; after_seq < LENGTH; after_seq += PAGE) {
      await readEvents(storage.read, bot, { after_seq, limit: PAGE });
    }
  };
  const pairs = await alternate(ROUNDS, {
    floor: () =>
      timeOf(() => {
        for (let after_seq = 0; after_seq < LENGTH; after_seq += PAGE) {
          for (const row of select.all(bot, after_seq, PAGE)) JSON.parse(row.payload);
        }
      }),
    ours: () => timeOf(work === 'read' ? readAll : () => verifyEvents(storage.read, bot)),
  });
  database.close();
  return pairs;
}

function fills(count: number): NewEvent[] {
  return Array.from({ length: count }, (_, n) => fillOf(n));
}

/** A fill as the engine records it; one event in a hundred changes the state of the bot. */
function fillOf(n: number): NewEvent {
  if (n % 100 === 99) return { ...CREATED, kind: 'bot.updated', payload: { name: `SMA ${n}` } };
  const amounts = { quantity: 12.5, price: 4321.25, reference: 4320.5, fee: 0.61, slippage: 0.2 };
  const order = { order: n, symbol: 'SPX', side: 'buy' };
  const payload = { ...order, ...amounts, position: 25, cash: 91_234.5 };
  const run_id = '019b7d0e-0000-7000-8000-000000000000';
  return { kind: 'order.filled', version: 1, occurred_at: NOW + n, run_id, payload };
}

function rowOf({ version, run_id, kind, occurred_at, payload }: NewEvent, seq: number): unknown[] {
  const recorded = [version, run_id ?? null, kind, occurred_at, NOW, null, JSON.stringify(payload)];
  return [bot, seq, newId(), ...recorded, HASH, HASH];
}
