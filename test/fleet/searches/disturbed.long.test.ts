import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { BASIC_ENV, BIN, serviceLocal } from '../../cli/service-local.ts';
import {
  startServer,
  startWorker,
  type RunningServer,
  type RunningWorker,
} from '../../server/running.ts';
import { addTrader } from '../../server/trader.ts';
import { startPostgres, type Cluster } from '../../storage/cluster.ts';
import { newDatabase, type TestDatabase } from '../../storage/databases.ts';

const BARS = 50_000;
/** Values of the parameters: 100 × 200 combinations. */
const GRID = ['-p', 'fast=2:101:1', '-p', 'slow=110:309:1'];
const TRIALS = 20_000;
const PAUSE_MS = 60_000;

let directory: string;
let cluster: Cluster;
let database: TestDatabase;
let storage: Storage;
let server: RunningServer;
let workers: readonly RunningWorker[];
let token: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-disturbed-'));
  await Promise.all([writeFile(join(directory, 'walk.csv'), walk()), writeBot()]);
  cluster = await startPostgres();
  database = await newDatabase('postgres', cluster.url);
  storage = await openStorage(database.location);
  token = (await addTrader(storage, Date.now())).slice('Bearer '.length);
  server = await startServer(database, ['--server-tasks', 'false']);
  const one = () => startWorker(database, ['--workers', '1']);
  workers = await Promise.all([one(), one(), one(), one()]);
});
afterAll(async () => {
  await Promise.all([server, ...workers].map((process) => process.kill()));
  await storage.close();
  await cluster.stop();
  await rm(directory, { recursive: true });
});

/** A random walk on minutes, as CSV. */
function walk(): string {
  let seed = 7;
  let price = 100;
  const lines = ['time,open,high,low,close,volume'];
  for (let bar = 0; bar < BARS; bar++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    const open = price;
    price *= 1 + (seed / 2_147_483_648 - 0.5) / 500;
    const [low, high] = [Math.min(open, price), Math.max(open, price)];
    const time = new Date(Date.UTC(2024, 0, 1) + bar * 60_000).toISOString();
    lines.push([time, open, high, low, price, 1000].join(','));
  }
  return `${lines.join('\n')}\n`;
}

function writeBot(): Promise<void> {
  return writeFile(
    join(directory, 'bot.yaml'),
    `apiVersion: bots/v1
kind: Bot
metadata: { name: Crossover, slug: crossover }
spec:
  kind: trading
  universe: { symbols: [WALK], currency: USD }
  data: { source: ./walk.csv, timeframe: 1m }
  strategy: { name: sma_crossover, params: { fast: 10, slow: 30 } }
  engine: { cash: '100000', fees: { model: percent, rate: '0.0001' } }
`,
  );
}

const wordsOf = (place: string): string[] => {
  const out = join(directory, place);
  return ['backtest', 'sweep', join(directory, 'bot.yaml'), ...GRID, '--out', out, '--json'];
};

const envOf = (place: string) => ({
  SERVICE_LOCAL_HOME: join(directory, `home-${place}`),
  SERVICE_LOCAL_SERVER_URL: server.url,
  SERVICE_LOCAL_TOKEN: token,
});

async function sweep(place: string, ...more: string[]) {
  const result = await serviceLocal([...wordsOf(place), ...more], { env: envOf(place) });
  expect(result, result.stderr).toMatchObject({ code: 0 });
  const { lock, ...document } = JSON.parse(result.stdout) as Record<string, unknown>;
  expect(lock).toBeDefined();
  return { document, rows: await readFile(join(directory, place, 'trials.csv'), 'utf8') };
}

/** Starts a sweep on the server that does not run to its end. */
function begin(): ChildProcess {
  return spawn(process.execPath, [BIN, ...wordsOf('there'), '--on', 'server'], {
    env: { ...BASIC_ENV, HOME: directory, ...envOf('there') },
    stdio: 'ignore',
  });
}

/** Resolves when this share of the trials is saved. */
const whenDone = (share: number): Promise<void> =>
  vi.waitFor(
    async () => {
      const log = join(directory, 'there', 'trials.ndjson');
      const lines = existsSync(log) ? (await readFile(log, 'utf8')).split('\n').length : 0;
      expect(lines).toBeGreaterThan(share * TRIALS);
    },
    { timeout: 600_000, interval: 200 },
  );

const searches = () => storage.read.selectFrom('searches').selectAll().execute();

test('a killed command leaves its search to the next one, and Ctrl-C ends it on the server', async () => {
  const killed = begin();
  await whenDone(0.02);
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  const [left] = await searches();
  const interrupted = begin();
  await whenDone(0.04);
  expect(await searches()).toMatchObject([{ search_id: left!.search_id }]);
  interrupted.kill('SIGINT');
  expect(await once(interrupted, 'exit')).toEqual([130, null]);
  expect(await searches()).toEqual([]);
});

test('a killed worker, a paused one and a restart of PostgreSQL change no row of a sweep', async () => {
  const disturb = async (): Promise<void> => {
    await whenDone(0.1);
    await workers[0]!.kill();
    await whenDone(0.15);
    process.kill(workers[1]!.pid, 'SIGSTOP');
    const paused = wait(PAUSE_MS).then(() => process.kill(workers[1]!.pid, 'SIGCONT'));
    await whenDone(0.3);
    await cluster.shutDown();
    await cluster.startAgain();
    await paused;
  };
  const [remote] = await Promise.all([sweep('there', '--on', 'server'), disturb()]);
  const local = await sweep('here');
  expect(remote.rows.split('\n')).toHaveLength(TRIALS + 2);
  expect(remote.rows).toBe(local.rows);
  expect(remote.document).toEqual(local.document);
  for (const table of ['searches', 'search_inputs', 'search_shards'] as const) {
    expect(await storage.read.selectFrom(table).selectAll().execute()).toEqual([]);
  }
});
