import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Task } from '../../src/api/tasks.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import type { SweepDocument } from '../../src/backtest/search/sweep-document.ts';
import { startBacktest } from '../../src/fleet/tasks/tasks.ts';
import { strategyThat } from '../trading/sandbox/bundles.ts';
import { newWorld, type World } from '../identity/people.ts';
import { serve, type RunningServer, type ServerHere } from '../server/running.ts';
import { documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { inProcess } from './in-process.ts';
import { BASIC_ENV, BIN, type Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

const WAITING = /^waiting for task ([\w-]{36}); Ctrl-C leaves it running\n/;

let world: World;
let server: RunningServer | ServerHere;
let directory: string;
let token: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  directory = await mkdtemp(join(tmpdir(), 'service-local-tasks-cli-'));
  await fillCatalogue(join(directory, 'catalogue'), isAtLength ? 60_000 : 10);
  token = await (await world.newPerson()).token('read', 'write');
  server = await start();
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const start = () => serve(world.database, join(directory, 'catalogue'));

const environment = () => ({ ...server.env, SERVICE_LOCAL_TOKEN: token });

const service = (...words: string[]): Promise<Result> => inProcess(words, { env: environment() });

async function json<T>(...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await service(...words, '--json');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as T;
}

/** Creates a bot on the server. @returns the path of its file */
async function newBot(slug: string, symbol: string, timeframe: '1d' | '1m'): Promise<string> {
  const path = join(directory, `${slug}.yaml`);
  await writeFile(path, JSON.stringify(documentOn(slug, symbol, timeframe)));
  await json('bots', 'create', '-f', path);
  return path;
}

test('a backtest on the server has the same result as on this machine', async () => {
  const path = await newBot('days', 'SPX', '1d');
  const shown = await service('bots', 'backtest', 'days', '-p', 'fast=12');
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.stdout).toContain('Closed trades');
  const [, task_id] = WAITING.exec(shown.stderr) as unknown as [string, string];

  const out = join(directory, 'result');
  const hosted = await json<Summary>('tasks', 'result', task_id, '--out', out);
  const catalogue = ['--catalogue-dir', join(directory, 'catalogue')];
  const local = await json<Summary>(
    'backtest',
    path,
    '-p',
    'fast=12',
    ...catalogue,
    '--out',
    `${out}-2`,
  );
  expect(hosted.hashes).toEqual(local.hashes);
  expect(hosted.lock).toEqual(local.lock);
  expect(await readdir(out)).toEqual(await readdir(`${out}-2`));
  const equity = await readFile(join(out, 'equity.csv'));
  expect(createHash('sha256').update(equity).digest('hex')).toBe(local.hashes.equity);

  const { deployments } = await json<{ deployments: object[] }>('bots', 'deployments', 'days');
  expect(deployments).toMatchObject([{ task_id, target: 'backtest', status: 'success' }]);
  expect((await service('tasks', 'list', '--bot', 'days')).stdout).toMatch(
    / days v1 +success +\d{4}-/,
  );
  const log = ['bots', 'log', 'days', '--run', task_id];
  expect(await service(...log)).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'No logged lines were found.\n',
  });
  expect((await service(...log, '--follow')).stderr).toMatch(/^error usage: .* is a backtest, /);
  const run = ['bots', 'events', 'days', '--run', task_id, '--kind', 'run.ended'];
  expect(await json<{ events: object[] }>(...run)).toMatchObject({ events: [{ run_id: task_id }] });
});

test('a failed backtest reports the cause, and an invalid one is not started', async () => {
  await newBot('never', 'TWO', '1d');
  await writeFile(join(directory, 'catalogue', 'TWO', '1d.parquet'), 'cut short');
  const failed = await service('bots', 'backtest', 'never');
  expect(failed).toMatchObject({ code: 3, stdout: '' });
  expect(failed.stderr).toMatch(/error invalid_data: /);
  const wrong = await service('bots', 'backtest', 'never', '-p', 'fsat=3');
  expect(wrong).toMatchObject({ code: 3, stdout: '' });
  expect(wrong.stderr).toContain('\n  --param fsat unknown_param ');
  const { tasks } = await json<{ tasks: Task[] }>('tasks', 'list', '--bot', 'never');
  const [{ task_id }] = tasks as [Task];
  expect((await service('tasks', 'get', task_id)).stdout).toContain('invalid_data: ');
  const other = await service('bots', 'events', 'days', '--run', task_id);
  expect(other).toMatchObject({ code: 1, stdout: '' });
  expect(other.stderr).toContain(`task ${task_id} does not belong to bot days\n`);
  // With --after-seq, the server is not asked for events of the task before its log is read.
  for (const options of [[], ['--after-seq', '0']]) {
    const log = await service('bots', 'log', 'days', '--run', task_id, ...options);
    expect(log.stderr).toBe(other.stderr);
  }
  const lines = '2000-01-01T00:00:00Z one\n2000-01-02T00:00:00Z two\n';
  const data = gzipSync(lines).toString('base64');
  await world.identity.storage.write(
    async (tx) =>
      void (await tx
        .insertInto('task_files')
        .values({ task_id, name: 'log.txt', place: 0, data })
        .execute()),
  );
  const log = ['bots', 'log', 'never', '--run', task_id];
  expect(await service(...log)).toMatchObject({ code: 0, stdout: lines, stderr: '' });
  expect(await json(...log)).toEqual({ lines: lines.trimEnd().split('\n') });
  expect(await service('tasks', 'result', task_id)).toMatchObject({ code: 6 });
  expect((await service('tasks', 'cancel', task_id)).stdout).toBe(`task ${task_id} is failed\n`);
});

test.runIf(isAtLength)(
  'a task that fails for good shows every problem, and the server logs it',
  async () => {
    const customCode = { memoryMb: 256, timeoutMs: 10_000 };
    const catalogueDir = join(directory, 'catalogue');
    const { storage } = world.identity;
    const other = { storage, clock: Date.now, customCode, catalogueDir };
    await newBot('coded', 'SPX', '1d');
    const strategy = { name: null, module: './own.ts', params: null };
    const { task_id } = await startBacktest(other, 'operator', 'coded', {
      patch: { spec: { strategy } },
      files: { 'own.ts': strategyThat('') },
    });
    expect(await service('tasks', 'result', task_id, '--wait')).toMatchObject({ code: 3 });
    expect((await service('tasks', 'get', task_id)).stdout).toMatch(
      / coded v1, unsaved code .*\n\ninvalid_spec: the spec has a problem\n {2}\/spec\/strategy\/module module_not_hosted .* use a built-in strategy/,
    );
    expect(server.log()).toMatch(
      new RegExp(
        `warn: task ${task_id} of bot \\S+ failed: invalid_spec: the spec has a problem; see`,
      ),
    );
  },
);

test.runIf(isAtLength)('Ctrl-C stops the waiting, which can be resumed later', async () => {
  await newBot('left', 'LONG', '1m');
  const waiting = spawn(process.execPath, [BIN, 'bots', 'backtest', 'left'], {
    env: { ...BASIC_ENV, ...environment() },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const closed = once(waiting, 'close');
  let told = '';
  for await (const chunk of waiting.stderr) {
    told += String(chunk);
    if (told.endsWith('\n') && !waiting.killed) waiting.kill('SIGINT');
  }
  expect(await closed).toEqual([130, null]);
  const [, task_id] = WAITING.exec(told)!;
  expect(told).toContain(`stopped waiting; task ${task_id} continues`);
  expect(told).toContain(`service-local tasks result ${task_id} --wait`);
  expect(await json<Summary>('tasks', 'result', task_id!, '--wait')).toHaveProperty('hashes');
});

test.runIf(isAtLength)(
  'a sweep on the server has the same trials as on this machine, and is shown in the same way',
  async () => {
    const path = await newBot('swept', 'SPX', '1d');
    const body = { kind: 'sweep', parameters: ['fast=5,10', 'slow=20:40:10'] };
    const answer = await fetch(`${server.url}/bots/swept/analyses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const { task_id } = (await answer.json()) as { task_id: string };
    const shown = await service('tasks', 'result', task_id, '--wait');
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('Sharpe') });
    const out = join(directory, 'swept-on-server');
    const hosted = await json<SweepDocument>('tasks', 'result', task_id, '--out', out);
    expect((await readdir(out)).toSorted()).toEqual(['report.html', 'sweep.json', 'trials.csv']);
    const own = ['-p', 'fast=5,10', '-p', 'slow=20:40:10', '--out', join(directory, 'swept')];
    const catalogue = ['--catalogue-dir', join(directory, 'catalogue')];
    const local = await json<SweepDocument>('backtest', 'sweep', path, ...own, ...catalogue);
    expect(hosted.hashes).toEqual(local.hashes);
    expect(hosted.best).toEqual(local.best);
  },
);

test.runIf(isAtLength)(
  'after kill -9, the next start of the server finishes a backtest with the same hashes',
  async () => {
    const path = await newBot('long', 'LONG', '1m');
    const { task_id } = await json<Task>('bots', 'backtest', 'long', '--detach');
    await vi.waitFor(
      async () =>
        expect(await json<Task>('tasks', 'get', task_id)).toMatchObject({ status: 'running' }),
      { interval: 20 },
    );
    assert('kill' in server);
    await server.kill();
    server = await start();

    const hosted = await json<Summary>('tasks', 'result', task_id, '--wait');
    const catalogue = ['--catalogue-dir', join(directory, 'catalogue')];
    const out = join(directory, 'long');
    const local = await json<Summary>('backtest', path, ...catalogue, '--out', out);
    expect(hosted.hashes).toEqual(local.hashes);
    expect(await json<Task>('tasks', 'get', task_id)).toMatchObject({
      status: 'success',
      attempts: 2,
    });
    expect((await service('bots', 'events', 'verify', 'long')).code).toBe(0);
  },
);
