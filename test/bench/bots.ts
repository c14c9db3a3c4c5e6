import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { exampleDocument } from '../../src/api/bots.ts';
import { createBot } from '../../src/fleet/registry/bots.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { startServer, type RunningServer } from '../server/running.ts';
import { startPostgres } from '../storage/cluster.ts';
import { newDatabase, newSqlite, type TestDatabase } from '../storage/databases.ts';
import { documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { figure, median, round, type Figure } from './figure.ts';

/** What a page holds: as much as the tiny database has of each. */
const PAGE = 100;
const BOTS = 1000;
/** Ten of a bot on each of the trading days of a year. */
const EVENTS = 2520;
const ROUNDS = 60;

/** Pages of a thousand bots with a year behind them, and how a server answers beside backtests. */
export async function bots(): Promise<Figure[]> {
  const onSqlite = await pages('SQLite', () => newDatabase('sqlite'));
  const cluster = await startPostgres();
  try {
    const onPostgres = await pages('PostgreSQL', () => newDatabase('postgres', cluster.url));
    return [...onSqlite, ...onPostgres, await healthBesideBacktests()];
  } finally {
    await cluster.stop();
  }
}

async function pages(on: string, newOne: () => Promise<TestDatabase>): Promise<Figure[]> {
  const tiny = await fill(await newOne(), PAGE, PAGE);
  const big = await fill(await newOne(), BOTS, EVENTS);
  try {
    return [
      ...(await compare(`bots in pages of ${PAGE}, ${BOTS} of them`, on, tiny, big, listPaths)),
      ...(await compare(
        `events in pages of ${PAGE}, ${EVENTS} of a bot`,
        on,
        tiny,
        big,
        eventPaths,
      )),
    ];
  } finally {
    await tiny.close();
    await big.close();
  }
}

interface Filled extends Asker {
  readonly bots: number;
  readonly events: number;
  readonly close: () => Promise<void>;
}

interface Asker {
  /** @returns the body of a successful answer, as JSON. */
  readonly get: (path: string) => Promise<Record<string, unknown>>;
}

/** A server with so many bots, and so many events of each. */
async function fill(database: TestDatabase, count: number, events: number): Promise<Filled> {
  const storage = await openStorage(database.location);
  const authorization = await addCaller(storage);
  await addBots(storage, count);
  await addEvents(storage, count, events);
  await storage.close();
  const server = await startServer(database, ['--log-json']);
  return {
    ...askerOf(server, authorization),
    bots: count,
    events,
    async close() {
      await server.stop();
      await database.remove();
    },
  };
}

/** @returns what to send as `Authorization`. */
async function addCaller(storage: Storage): Promise<string> {
  const administrator_id = 'root';
  const factors = { password_hash: 'none', totp_secret: 'none', totp_last_step: 0 };
  const times = { created_at: Date.now(), disabled_at: null };
  const terms = { label: 'load', scopes: ['read', 'write'] as const, expires_in_seconds: 86_400 };
  const { token } = await storage.write(async (tx) => {
    const row = { administrator_id, name: administrator_id, ...factors, ...times };
    await tx.insertInto('administrators').values(row).execute();
    return addToken(tx, Date.now(), 'operator', administrator_id, terms);
  });
  return `Bearer ${token}`;
}

const slugOf = (n: number): string => `bot-${String(n).padStart(6, '0')}`;

/** @param count in hundreds. */
export async function addBots(storage: Storage, count: number): Promise<void> {
  for (let done = 0; done < count; done += PAGE) {
    await Promise.all(
      Array.from({ length: PAGE }, (_, n) =>
        addBot(storage, exampleDocument(slugOf(done + n), 10)),
      ),
    );
  }
}

async function addBot(storage: Storage, document: Record<string, unknown>): Promise<void> {
  await createBot({ storage, clock: Date.now }, 'operator', { document });
}

/** As many as there are to be, by the database itself: nobody looks at their hashes here. */
async function addEvents(storage: Storage, count: number, events: number): Promise<void> {
  const payload = { order: 7, symbol: 'SPX', side: 'buy', quantity: 12.5, price: 4321.25 };
  for (let done = 0; done < count; done += PAGE) {
    await storage.write(async (tx) => {
      await sql`
      with recursive places (seq) as (
        select event_seq + 1 from (select min(event_seq) as event_seq from bots) as first
        union all select seq + 1 from places where seq < ${sql.lit(events)}
      )
      insert into bot_events (bot_id, seq, event_id, version, run_id, kind, occurred_at,
        recorded_at, causation_id, payload, prev_hash, hash)
      select bot_id, seq, bot_id || '-' || seq, 1, bot_id, 'order.filled', 1767323045000 + seq,
        1767323045000 + seq, null, ${sql.lit(JSON.stringify(payload))}, ${sql.lit(HASH)},
        ${sql.lit(HASH)}
      from bots cross join places
      where slug >= ${sql.lit(slugOf(done))} and slug < ${sql.lit(slugOf(done + PAGE))}`.execute(
        tx,
      );
    });
  }
  await storage.write((tx) =>
    tx.updateTable('bots').set({ event_seq: events, event_hash: HASH }).execute(),
  );
}

const HASH = '0123456789abcdef'.repeat(4);

function askerOf({ url }: RunningServer, authorization: string): Asker {
  return {
    async get(path) {
      const answer = await fetch(url + path, { headers: { authorization } });
      if (!answer.ok) throw new Error(await answer.text());
      return (await answer.json()) as Record<string, unknown>;
    },
  };
}

/** Of the first page, one in the middle, and the last. */
async function listPaths({ get, bots: count }: Filled): Promise<readonly string[]> {
  const paths = [`/bots?limit=${PAGE}`];
  for (let next = paths[0]!; paths.length < count / PAGE; paths.push(next)) {
    const { next_cursor } = await get(next);
    next = `/bots?limit=${PAGE}&cursor=${encodeURIComponent(next_cursor as string)}`;
  }
  return [paths[0]!, paths[paths.length >> 1]!, paths.at(-1)!];
}

async function eventPaths({ bots: count, events }: Filled): Promise<readonly string[]> {
  const path = `/bots/${slugOf(count >> 1)}/state/events?limit=${PAGE}&after_seq=`;
  const last = events - PAGE;
  return [path + 0, path + (last >> 1), path + last];
}

/** The tiny database has one page, which is all three of them. */
async function compare(
  what: string,
  on: string,
  tiny: Filled,
  big: Filled,
  pathsOf: (of: Filled) => Promise<readonly string[]>,
): Promise<Figure[]> {
  const paths = { tiny: await pathsOf(tiny), big: await pathsOf(big) };
  const times = { tiny: [[], [], []] as number[][], big: [[], [], []] as number[][] };
  for (let turn = 0; turn <= ROUNDS; turn += 1) {
    for (const at of [0, 1, 2]) {
      for (const [name, { get }] of [['tiny', tiny] as const, ['big', big] as const]) {
        const begin = performance.now();
        const { items } = (await get(paths[name][at]!)) as { readonly items: readonly unknown[] };
        if (items.length !== PAGE) throw new Error(`a page of ${items.length}`);
        // The first rounds are for compiling.
        if (turn > ROUNDS / 3) times[name][at]!.push(performance.now() - begin);
      }
    }
  }
  const text = (ms: number): string => `${round(ms)} ms`;
  return ['first', 'middle', 'last'].map((place, at) => {
    const [floor, ours] = [median(times.tiny[at]!), median(times.big[at]!)];
    const goal = { atMost: 2 };
    return figure(`${what}, ${place}, ${on}`, [text(floor), text(ours)], ours / floor, goal);
  });
}

const GOAL_MS = 50;

/** One request after the other, for as long as two backtests of a server take. */
async function healthBesideBacktests(): Promise<Figure> {
  const database = await newSqlite();
  const catalogue = join(dirname(database.location.file), 'catalogue');
  await fillCatalogue(catalogue, 300_000);
  const storage = await openStorage(database.location);
  const authorization = await addCaller(storage);
  await addBot(storage, documentOn('long', 'LONG', '1m'));
  await storage.close();
  const server = await startServer(database, ['--workers', '2', '--catalogue-dir', catalogue]);
  try {
    const { get } = askerOf(server, authorization);
    for (let n = 0; n < 50; n += 1) await get('/healthz');
    const start = (): Promise<Response> =>
      fetch(`${server.url}/bots/long/backtest`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: '{}',
      });
    await Promise.all([start(), start()]);
    const times: number[] = [];
    const isOver = endOf(get);
    for (let over = false; !over;) {
      const begin = performance.now();
      await get('/healthz');
      times.push(performance.now() - begin);
      over = await Promise.race([isOver, sleep(5, false)]);
    }
    const p99 = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)]!;
    const what = '/healthz beside two backtests, p99';
    return figure(what, [`${GOAL_MS} ms`, `${round(p99)} ms`], p99 / GOAL_MS, { atMost: 1 });
  } finally {
    await server.stop();
    await database.remove();
  }
}

/** @returns true once both have ended. */
async function endOf(get: Asker['get']): Promise<boolean> {
  for (;;) {
    await sleep(200);
    const { items } = await get('/tasks?status=success');
    if ((items as readonly unknown[]).length === 2) return true;
    const { items: failed } = await get('/tasks?status=failed');
    if ((failed as readonly unknown[]).length > 0) throw new Error(JSON.stringify(failed));
  }
}
