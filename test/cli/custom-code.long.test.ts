import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { BotDetail } from '../../src/api/bots.ts';
import type { BotEvent } from '../../src/api/bot-state.ts';
import type { HaltReport } from '../../src/api/halts.ts';
import type { RunReplay } from '../../src/api/replay.ts';
import type { Task } from '../../src/api/tasks.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { strategyThat, WAIT } from '../trading/sandbox/bundles.ts';
import { childrenOf, isRunning } from '../trading/sandbox/processes.ts';
import { startServer, type RunningServer } from '../server/running.ts';
import { addTrader, tradingDocument } from '../server/trader.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

let directory: string;
let database: TestDatabase;
let storage: Storage;
let authorization: string;
let server: RunningServer;
/** Hash of the events of `own`. */
let hash: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-custom-'));
  await fillCatalogue(join(directory, 'catalogue'), 1);
  database = await newDatabase('sqlite');
  storage = await openStorage(database.location);
  authorization = await addTrader(storage, Date.now());
  server = await start('10');
});
afterAll(async () => {
  await server.kill();
  await storage.close();
  await database.remove();
  await rm(directory, { recursive: true });
});

function start(timeoutSeconds: string): Promise<RunningServer> {
  const catalogue = ['--catalogue-dir', join(directory, 'catalogue')];
  const custom = ['--custom-code', 'true', '--strategy-timeout-seconds', timeoutSeconds];
  return startServer(database, [...catalogue, ...custom]);
}

function run(words: readonly string[]): Promise<Result> {
  const env = { ...server.env, SERVICE_LOCAL_TOKEN: authorization.slice('Bearer '.length) };
  return inProcess(words, { env });
}

async function json<T>(...words: string[]): Promise<T> {
  const result = await run([...words, '--json']);
  expect(result, result.stderr).toMatchObject({ code: 0 });
  return JSON.parse(result.stdout) as T;
}

/** Writes a bot with the files of its strategy. @returns the path of its spec */
async function fileOf(
  slug: string,
  files: Readonly<Record<string, string>>,
  place = slug,
): Promise<string> {
  const at = join(directory, place);
  await mkdir(at, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(at, name), text);
  const { spec, ...document } = tradingDocument(slug, 'SPX', '1d', 3) as {
    readonly spec: { readonly data: object };
  };
  const data = { ...spec.data, to: '2000-03-31' };
  const strategy = { module: './own.ts', params: {} };
  const path = join(at, 'bot.yaml');
  await writeFile(path, JSON.stringify({ ...document, spec: { ...spec, data, strategy } }));
  return path;
}

/** A strategy that imports its signal from another file. */
const IN_TURN = {
  'own.ts': strategyThat(
    'broker.target(instruments[0], weightAt(instruments[0].count));',
    "import { weightAt } from './weights.ts';",
  ),
  'weights.ts': 'export const weightAt = (count: number): number => (count % 7 < 3 ? 0.5 : 0);\n',
};

/** A strategy that trades and never returns from its fifth bar. */
const HANGING = {
  'own.ts': strategyThat(
    `const { count } = instruments[0]; broker.target(instruments[0], count % 2 / 2); if (count === 5) ${WAIT}`,
  ),
};

const find = (task_id: string): Promise<Task> => json<Task>('tasks', 'get', task_id);

const until = <T>(what: () => Promise<T>): Promise<T> =>
  vi.waitFor(what, { timeout: 25_000, interval: 400 });

const ended = (task_id: string): Promise<Task> =>
  until(async () => {
    const task = await find(task_id);
    expect(task.ended_at).not.toBeNull();
    return task;
  });

/** Waits for `count` processes of strategies. */
const strategies = (count: number): Promise<readonly number[]> =>
  until(async () => {
    const found = await childrenOf(server.pid);
    expect(found).toHaveLength(count);
    return found;
  });

const gone = (processes: readonly number[]): Promise<void> =>
  until(async () => {
    for (const process of processes) expect(await isRunning(process)).toBe(false);
  });

/** Waits until a session has reached its fourth bar. */
const atWork = (slug: string, task_id: string): Promise<void> =>
  until(async () => {
    const words = ['bots', 'events', slug, '--run', task_id, '--kind', 'data.bars'];
    const { events } = await json<{ events: BotEvent[] }>(...words);
    expect(events.length).toBeGreaterThan(3);
  });

/** Speed of ten days per second. */
async function startPaper(slug: string): Promise<string> {
  const speed = String(86_400 * 10);
  const words = ['bots', 'paper', 'start', slug, '--speed', speed, '--detach'];
  const { task_id } = await json<Task>(...words);
  await atWork(slug, task_id);
  return task_id;
}

test('sends a bot with its code; a change of code alone creates a version; runs are repeatable', async () => {
  const path = await fileOf('own', IN_TURN);
  const made = await json<BotDetail>('bots', 'create', '-f', path);
  expect(made).toMatchObject({ current_version: 1 });
  const tested = await json<Summary>('bots', 'backtest', 'own');
  expect(tested.trades.count).toBeGreaterThan(3);
  hash = tested.hashes.events;
  const local = await json<Summary>('backtest', path, '--catalogue-dir', `${directory}/catalogue`);
  expect(local.hashes.events).toBe(hash);

  const other = { ...IN_TURN, 'weights.ts': `${IN_TURN['weights.ts']}// other\n` };
  const changed = await fileOf('own', other, 'own-2');
  const { bot } = await json<{ bot: BotDetail }>('bots', 'update', 'own', '-f', changed);
  expect(bot).toMatchObject({ current_version: 2 });
  expect(bot.version_hash).not.toBe(made.version_hash);
  const digest = expect.stringMatching(/^[0-9a-f]{64}$/) as string;
  expect(await json('bots', 'diff', 'own')).toEqual({
    changes: [],
    files: [{ file: 'weights.ts', kind: 'changed', from: digest, to: digest }],
  });
  expect((await run(['bots', 'diff', 'own'])).stdout).toMatch(/\nweights\.ts +changed +\w{64} /);
});

test('a proposal becomes a version with the code of the version it was made for, if that is current', async () => {
  await json<BotDetail>('bots', 'create', '-f', await fileOf('proposed', IN_TURN));
  const propose = async (weight: number): Promise<string> => {
    const body = { patch: { spec: { risk: { max_position_pct: weight } } }, rationale: 'Less.' };
    const answer = await fetch(`${server.url}/bots/proposed/proposals`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return ((await answer.json()) as { proposal_id: string }).proposal_id;
  };
  const [one, other] = [await propose(0.5), await propose(0.4)];
  expect(await run(['bots', 'update', 'proposed', '--proposal', one])).toMatchObject({
    code: 0,
    stdout: 'proposed: updated, version 2\n',
  });
  expect(await json('bots', 'diff', 'proposed')).toMatchObject({
    changes: [{ pointer: '/spec/risk/max_position_pct' }],
    files: [],
  });
  const late = await run(['bots', 'update', 'proposed', '--proposal', other]);
  expect(late).toMatchObject({ code: 6 });
  expect(late.stderr).toContain('for version 1 of proposed, which is now at version 2');
  const none = await run(['bots', 'update', 'proposed', '--proposal', 'none']);
  expect(none.stderr).toContain('the bot has no proposal "none"');
  expect(await run(['bots', 'update', 'proposed'])).toMatchObject({ code: 2 });
});

test('rejects packages and Node modules before anything is sent', async () => {
  const helper = "import { readFileSync } from 'node:fs';\nexport const x = readFileSync;\n";
  const text = strategyThat('x;', "import { x } from './helper.ts';\nimport 'canonicalize';");
  await mkdir(join(directory, 'node_modules/canonicalize'), { recursive: true });
  await writeFile(join(directory, 'node_modules/canonicalize/index.js'), '');
  const path = await fileOf('packaged', { 'own.ts': text, 'helper.ts': helper });
  const { code, stderr } = await run(['bots', 'create', '-f', path]);
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr: expect.stringMatching(/cannot import '.*'.*provide no packages and no Node modules/),
  });
  expect(stderr).toMatch(/'node:fs'/);
  expect(stderr).toMatch(/'canonicalize'/);
});

test('cancels and halts code that hangs, and ends its process', async () => {
  await json('bots', 'create', '-f', await fileOf('hanging', HANGING));
  const backtest = await json<Task>('bots', 'backtest', 'hanging', '--detach');
  const [tested] = await strategies(1);
  await json('tasks', 'cancel', backtest.task_id);
  expect(await ended(backtest.task_id)).toMatchObject({ status: 'canceled' });
  await gone([tested!]);

  const task_id = await startPaper('hanging');
  const [traded] = await strategies(1);
  const report = await json<HaltReport>('bots', 'halt', 'hanging', '--reason', 'it hangs');
  expect(report).toMatchObject({ verified: true, deployments: [{ task_id, verified: true }] });
  await gone([traded!]);
  await json('bots', 'resume', 'hanging', '--reason', 'mended');
});

test('the process of a session that is stopped ends', async () => {
  const stopped = await startPaper('own');
  const [stopping] = await strategies(1);
  await json('bots', 'paper', 'stop', stopped);
  expect(await ended(stopped)).toMatchObject({ error: null });
  await gone([stopping!]);
});

test('a session whose code throws ends with its orders canceled', async () => {
  const order = "{ instrument: instruments[0], side: 'buy', quantity: 1, type: 'limit', limit: 1 }";
  const text = strategyThat(
    `if (instruments[0].count > 1) throw new Error('mine'); broker.order(${order});`,
  );
  await json('bots', 'create', '-f', await fileOf('throwing', { 'own.ts': text }));
  const words = ['bots', 'paper', 'start', 'throwing', '--detach', '--speed', 'max'];
  const { task_id } = await json<Task>(...words);
  const detail = expect.stringMatching(/bar 2 .*mine[^]*own\.ts/) as string;
  expect(await ended(task_id)).toMatchObject({ error: { code: 'strategy_failed', detail } });
  const kinds = ['--kind', 'order.submitted', '--kind', 'order.canceled'];
  const { events } = await json<{ events: BotEvent[] }>('bots', 'events', 'throwing', ...kinds);
  expect(events.map(({ kind }) => kind)).toEqual(['order.submitted', 'order.canceled']);
});

test('processes end with a server that is killed, and sessions go on with the next one', async () => {
  const own = await startPaper('own');
  const hung = await startPaper('hanging');
  const processes = await strategies(2);
  await server.kill();
  server = await start('1');
  expect(await ended(own)).toMatchObject({ status: 'success', attempts: 2 });
  const replayed = await json<RunReplay>('bots', 'replay', 'own', '--run', own);
  expect(replayed).toMatchObject({ matches: true, events_hash: hash });
  expect(await ended(hung)).toMatchObject({ error: { code: 'strategy_timeout' } });
  await gone(processes);
});
