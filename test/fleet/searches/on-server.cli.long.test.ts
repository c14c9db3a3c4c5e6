import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useTracer } from '../../../src/base/tracing.ts';
import type { Search } from '../../../src/api/searches.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { writeOwnBot } from '../../backtest/shards/own-bot.ts';
import { inProcess } from '../../cli/in-process.ts';
import type { Result } from '../../cli/service-local.ts';
import { serveHere, type ServerHere } from '../../server/running.ts';
import { addTrader } from '../../server/trader.ts';
import { newDatabase, type TestDatabase } from '../../storage/databases.ts';

const SMA = join(import.meta.dirname, '../../../examples/sma-crossover.yaml');

let directory: string;
let database: TestDatabase;
let storage: Storage;
let server: ServerHere;
let authorization: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-shards-'));
  database = await newDatabase('sqlite');
  storage = await openStorage(database.location);
  authorization = await addTrader(storage, Date.now());
  server = await serveHere(database, {
    SERVICE_LOCAL_CUSTOM_CODE: 'true',
    SERVICE_LOCAL_WORKERS: '2',
  });
});
afterAll(async () => {
  await server.stop();
  await storage.close();
  await database.remove();
  await rm(directory, { recursive: true });
});

function run(words: readonly string[], home = 'home'): Promise<Result> {
  const env = {
    SERVICE_LOCAL_HOME: join(directory, home),
    SERVICE_LOCAL_SERVER_URL: server.url,
    SERVICE_LOCAL_TOKEN: authorization.slice('Bearer '.length),
  };
  return inProcess([...words, '--json'], { env });
}

async function json(words: readonly string[], home?: string): Promise<Record<string, unknown>> {
  const result = await run(words, home);
  expect(result, result.stdout).toMatchObject({ code: 0 });
  return JSON.parse(result.stdout) as Record<string, unknown>;
}

async function searches(): Promise<readonly Search[]> {
  const answer = await fetch(`${server.url}/searches`, { headers: { authorization } });
  return ((await answer.json()) as { readonly items: readonly Search[] }).items;
}

/** Runs a command on this machine and on the server. @returns both documents and directories */
async function both(name: string, words: readonly string[]) {
  const here = join(directory, `${name}-here`);
  const there = join(directory, `${name}-there`);
  const local = await json([...words, '--out', here]);
  const remote = await json([...words, '--on', 'server', '--out', there]);
  return { local, remote, here, there };
}

const COMMANDS: readonly (readonly [verb: string, options: readonly string[]])[] = [
  ['sweep', ['-p', 'fast=5:20:5', '-p', 'slow=20:80:20']],
  [
    'sweep',
    ['-p', 'fast=5:50', '-p', 'slow=20:200', '--search', 'tpe', '--trials', '20', '--prune'],
  ],
  ['walk-forward', ['-p', 'fast=5:15:5', '-p', 'slow=20:60:20', '--train', '5y', '--test', '5y']],
  ['robustness', ['-p', 'fast=5:15:5', '-p', 'slow=20:60:20', '--permutations', '19']],
];

test.each(COMMANDS)(
  '%s %j has the same result on a server as on this machine',
  async (verb, options) => {
    const name = `${verb}-${options.length}`;
    const { local, remote, here, there } = await both(name, ['backtest', verb, SMA, ...options]);
    expect(remote).toEqual(local);
    if (verb === 'sweep') {
      const rows = (place: string) => readFile(join(place, 'trials.csv'), 'utf8');
      expect(await rows(there)).toBe(await rows(here));
    }
    expect(await searches()).toEqual([]);
  },
);

test('an own strategy of several files runs in the sandbox of the workers', async () => {
  const bot = await writeOwnBot(directory);
  const { local, remote } = await both('own', ['backtest', 'sweep', bot, '-p', 'day=1:6:1']);
  expect(remote).toEqual(local);
});

test('the summary states the trials that other machines have recorded on the server', async () => {
  const words = ['backtest', 'sweep', SMA, '--on', 'server', '--out'];
  await json([...words, join(directory, 'first'), '-p', 'fast=3,4']);
  const other = [...words, join(directory, 'second'), '-p', 'fast=4,6'];
  const { lock } = await json(other, 'home-of-another-machine');
  const { count } = (lock as { readonly trials: { readonly count: number } }).trials;
  const { groups } = (await json(['runs', 'trials', '--server'])) as {
    readonly groups: readonly { readonly family: string; readonly trials: number }[];
  };
  const { trials } = groups.find(({ family }) => family === 'sma_crossover')!;
  // Two of them are the own trials of the second sweep.
  expect(count).toBe(trials - 2);
  expect(count).toBeGreaterThan(0);
});

test('each shard is a span and counts in the metrics of its worker', async () => {
  const count = async (): Promise<number> => {
    const answer = await fetch(`${server.url}/metrics`, { headers: { authorization } });
    const [, ended = '0'] =
      /^service_local_tasks_ended_total\{kind="shard",status="success"\} (\d+)$/m.exec(
        await answer.text(),
      ) ?? [];
    return Number(ended);
  };
  const spans: string[] = [];
  const stop = useTracer({
    startSpan(name) {
      spans.push(name);
      const none = (): void => {};
      const ids = { trace_id: '1'.repeat(32), span_id: '2'.repeat(16), traceparent: '' };
      return { ...ids, rename: none, set: none, fail: none, end: none };
    },
  });
  const before = await count();
  const words = ['backtest', 'sweep', SMA, '-p', 'fast=5:9:1', '--on', 'server'];
  await json([...words, '--out', join(directory, 'counted')]);
  stop();
  // Five trials are two shards.
  expect(await count()).toBe(before + 2);
  expect(spans.filter((name) => name === 'shard')).toHaveLength(2);
});

test('the error of a trial is its result', async () => {
  const out = join(directory, 'failing');
  const words = [
    'backtest',
    'sweep',
    await writeOwnBot(directory),
    '-p',
    'day=6:7:1',
    '--on',
    'server',
  ];
  const result = await run([...words, '--out', out]);
  expect(result.code).toBe(1);
  expect(await readFile(join(out, 'trials.csv'), 'utf8')).toContain('no such day');
});
