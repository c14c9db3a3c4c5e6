import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Task } from '../../src/api/tasks.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { newWorld, type World } from '../identity/people.ts';
import { serve, type RunningServer, type ServerHere } from '../server/running.ts';
import { isAtLength } from '../length.ts';
import { tradingDocument } from '../server/trader.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { inProcess } from './in-process.ts';
import { BASIC_ENV, BIN, type Result } from './service-local.ts';

/** Plays 100 days in six seconds. */
const SPEED = String(86_400 * 17);

let world: World;
let server: RunningServer | ServerHere;
let directory: string;
let token: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  directory = await mkdtemp(join(tmpdir(), 'service-local-paper-cli-'));
  await fillCatalogue(join(directory, 'catalogue'), 1);
  token = await (await world.newPerson()).token('read', 'write', 'trade');
  server = await start();
  const path = join(directory, 'days.yaml');
  const { spec, ...document } = tradingDocument('days', 'SPX', '1d', 1) as {
    readonly spec: { readonly data: object };
  };
  const data = { ...spec.data, to: '2000-04-09' };
  await writeFile(path, JSON.stringify({ ...document, spec: { ...spec, data } }));
  await json('create', '-f', path);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const start = () => serve(world.database, join(directory, 'catalogue'));

const environment = () => ({ ...server.env, SERVICE_LOCAL_TOKEN: token });

const bots = (...words: string[]): Promise<Result> =>
  inProcess(['bots', ...words], { env: environment() });

async function json<T>(...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await bots(...words, '--json');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as T;
}

/** Waits until this count of steps of a session are recorded. */
async function untilRecorded(task_id: string, steps: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const { steps: done } = await world.identity.storage.read
        .selectFrom('trading_sessions')
        .select('steps')
        .where('task_id', '=', task_id)
        .executeTakeFirstOrThrow();
      expect(done).toBeGreaterThanOrEqual(steps);
    },
    { timeout: 30_000, interval: 40 },
  );
}

test.runIf(isAtLength)(
  'a session outlives who waits for it and its server, and comes to the same',
  async () => {
    const waiting = spawn(
      process.execPath,
      [BIN, 'bots', 'paper', 'start', 'days', '--speed', SPEED],
      {
        env: { ...BASIC_ENV, ...environment() },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    const closed = once(waiting, 'close');
    let told = '';
    for await (const chunk of waiting.stderr) {
      told += String(chunk);
      if (told.includes('leaves it running\n') && !waiting.killed) waiting.kill('SIGINT');
    }
    expect(await closed).toEqual([130, null]);
    const [, task_id] =
      /^at speed \d+, the next bar comes in \d+ ms .*\nwaiting for task ([\w-]{36}); Ctrl-C leaves it running\n/.exec(
        told,
      ) as unknown as [string, string];
    expect(told).toContain(`or end the task with \`service-local bots paper stop ${task_id}\``);
    await untilRecorded(task_id, 30);
    assert('kill' in server);
    await server.kill();
    server = await start();

    const whole = await json<Summary>('paper', 'start', 'days', '--speed', 'max');
    expect(whole.orders.filled).toBeGreaterThan(0);
    const env = environment();
    const result = await inProcess(['tasks', 'result', task_id, '--wait', '--json'], { env });
    expect((JSON.parse(result.stdout) as Summary).hashes).toEqual(whole.hashes);
    const { stdout } = await inProcess(['tasks', 'get', task_id, '--json'], { env });
    expect(JSON.parse(stdout)).toMatchObject({ status: 'success', attempts: 2 });
  },
);

test.runIf(isAtLength)('shows a running session and stops it', async () => {
  const detached = await bots('paper', 'start', 'days', '--detach');
  expect(detached).toMatchObject({
    code: 0,
    stderr:
      'at speed 1, the next bar comes in 24 hours and the session ends in 100 days at the earliest; --speed max runs without waiting\n',
  });
  const [, task_id] = /^task ([\w-]{36}) is queued\n/.exec(detached.stdout) as unknown as [
    string,
    string,
  ];
  expect(detached.stdout).toContain('service-local bots paper status days');
  await untilRecorded(task_id, 1);
  const shown = await bots('paper', 'status', 'days');
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  const [head, row] = shown.stdout.split('\n').map((line) => line.split(/ {2,}/));
  expect(head!.slice(0, 4)).toEqual(['task', 'version', 'time', 'equity']);
  expect(row!.slice(0, 3)).toEqual([task_id, '1', '2000-01-01T00:00:00.000Z']);
  const { sessions } = await json<{ sessions: object[] }>('paper', 'status', 'days');
  expect(sessions).toMatchObject([{ task_id, status: 'running', version: 1, positions: {} }]);

  const second = await bots('paper', 'start', 'days', '--detach', '--json');
  expect(second.stderr).toContain(
    'this bot already has 1 running session, and now trades in one more; ',
  );
  const { task_id: other } = JSON.parse(second.stdout) as Task;
  expect(await bots('paper', 'stop', 'days')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`has 2 sessions: ${other}, ${task_id}\n`) as string,
  });
  await bots('paper', 'stop', other);
  await inProcess(['tasks', 'result', other, '--wait'], { env: environment() });

  const stopped = await bots('paper', 'stop', 'days');
  expect(stopped).toMatchObject({ code: 0, stderr: '' });
  expect(stopped.stdout).toBe(
    `task ${task_id} is stopping\nSee \`service-local tasks result ${task_id} --wait\`.\n`,
  );
  const result = await inProcess(['tasks', 'result', task_id, '--wait', '--json'], {
    env: environment(),
  });
  expect(JSON.parse(result.stdout)).toMatchObject({ window: { bars: 1 } });
  expect(await json<Task>('paper', 'stop', task_id)).toMatchObject({ status: 'success' });
  expect((await bots('paper', 'stop', task_id)).stdout).toBe(`task ${task_id} is success\n`);
  expect((await bots('paper', 'status', 'days')).stdout).toMatch(
    new RegExp(`^No entries\\.\nThe last session, task ${other}, ended at 20\\S+Z: \\w+\\.\nSee `),
  );
  expect(await bots('paper', 'stop', 'days')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('service-local bots deployments days') as string,
  });
});

test.each([
  [['start', 'days', '--speed', '0'], 2, "'0' is not a speed"],
  [['start', 'days', '--exchange', 'binance'], 2, 'Add --live'],
  [['start', 'days', '-p', 'fsat=3'], 3, '--param fsat unknown_param'],
  [['start', 'nobody'], 1, 'there is no bot "nobody"'],
  [['status', 'nobody'], 1, 'there is no bot "nobody"'],
  [['stop', '0198c0de-0000-7000-8000-00000000dddd'], 1, 'there is no task or bot'],
])('%j makes no sense', async (words, code, message) => {
  const answer = await bots('paper', ...words);
  expect(answer).toMatchObject({ code, stdout: '' });
  expect(answer.stderr).toContain(message);
});

test('names --from and --to when they are in the wrong order', async () => {
  const dates = ['--from', '2010-01-01', '--to', '2009-01-01'];
  const { code, stderr } = await bots('paper', 'start', 'days', ...dates);
  expect(code).toBe(3);
  expect(stderr).toBe(
    'error invalid_spec: --to is invalid\n' +
      '  --to invalid_value from 2010-01-01 is after to 2009-01-01\n',
  );
});
