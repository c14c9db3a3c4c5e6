import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { BotEvent } from '../../src/api/bot-state.ts';
import type { BotSummary } from '../../src/api/bots.ts';
import type { Halt, HaltReport } from '../../src/api/halts.ts';
import {
  serveHere,
  startServer,
  startWorker,
  type RunningServer,
  type RunningWorker,
  type ServerHere,
} from '../server/running.ts';
import { isAtLength } from '../length.ts';
import { addTrader, tradingDocument } from '../server/trader.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

/** A server and, at length, a worker: two processes on one PostgreSQL. */
let directory: string;
let database: TestDatabase;
let storage: Storage;
let authorization: string;
let server: RunningServer | ServerHere;
let worker: RunningWorker;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-halts-'));
  await fillCatalogue(directory, 10);
  database = await newDatabase('postgres');
  storage = await openStorage(database.location);
  authorization = await addTrader(storage, Date.now());
  const args = ['--catalogue-dir', directory];
  if (isAtLength) {
    server = await startServer(database, [...args, '--server-tasks', 'false']);
    worker = await startWorker(database, args);
  } else server = await serveHere(database, { SERVICE_LOCAL_CATALOGUE_DIR: directory });
  await send('POST', '/bots', { document: tradingDocument('days', 'SPX', '1d', 1) });
});
afterAll(async () => {
  await ('kill' in server ? Promise.all([server.kill(), worker.kill()]) : server.stop());
  await storage.close();
  await database.remove();
  await rm(directory, { recursive: true });
});

async function send<T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
  const answer = await fetch(server.url + path, {
    method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json: unknown = await answer.json();
  expect(answer.status, JSON.stringify(json)).toBeLessThan(300);
  return json as T;
}

const run = (words: readonly string[]): Promise<Result> => {
  const env = { ...server.env, SERVICE_LOCAL_TOKEN: authorization.slice('Bearer '.length) };
  return inProcess(words, { env });
};
const bots = (...words: string[]): Promise<Result> => run(['bots', ...words]);
const tasks = (...words: string[]): Promise<Result> => run(['tasks', ...words]);

async function answerOf<T>(code: number, ...words: string[]): Promise<T> {
  const result = await bots(...words, '--json');
  expect(result, result.stderr).toMatchObject({ code });
  return JSON.parse(result.stdout) as T;
}

/** Starts an endless session at 100 days per second. @returns its id once it trades */
async function startTrading(): Promise<string> {
  const { task_id } = await send<{ task_id: string }>('POST', '/bots/days/paper/start', {
    speed: 86_400 * 100,
  });
  await vi.waitFor(async () => expect(await eventsOf(task_id)).toContain('order.filled'), {
    timeout: 20_000,
    interval: 50,
  });
  return task_id;
}

async function eventsOf(task_id: string): Promise<string[]> {
  const path = '/bots/days/state/events?limit=1000';
  const { items } = await send<{ items: BotEvent[] }>('GET', path);
  return items.filter(({ run_id }) => run_id === task_id).map(({ kind }) => kind);
}

test.runIf(isAtLength)(
  'halts a session that hangs in another process, which then places no orders',
  async () => {
    const task_id = await startTrading();
    process.kill(worker.pid, 'SIGSTOP');
    const halted = await bots('halt', 'days', '--reason', 'it hangs');
    expect(halted).toMatchObject({ code: 0, stderr: '' });
    expect(halted.stdout).toMatch(
      /^The bot days has been halted since \S+: it hangs\n1 deployment and \d+ orders? verified/,
    );
    const before = await eventsOf(task_id);
    expect(before.at(-1)).toBe('run.ended');
    process.kill(worker.pid, 'SIGCONT');
    // By then, the worker runs another session, so this one has ended.
    await bots('resume', 'days', '--reason', 'to see whether it lives');
    const next = await startTrading();
    expect(await eventsOf(task_id)).toEqual(before);

    const waiting = tasks('result', next, '--wait');
    const report = await answerOf<HaltReport>(0, 'halt-all', '--reason', 'that is enough');
    const told = /\S+ halted all bots at \S+: that is enough\n/;
    const stderr = expect.stringMatching(told) as string;
    expect(await waiting).toMatchObject({ code: 1, stderr });
    expect(await tasks('result', next)).toMatchObject({ code: 6, stderr });
    expect((await tasks('get', next)).stdout).toMatch(told);
    expect(report).toMatchObject({ verified: true, deployments: [{ task_id: next }] });
    const { halts } = await answerOf<{ halts: Halt[] }>(0, 'halts');
    expect(halts.map(({ reason, lift_reason }) => [reason, lift_reason])).toEqual([
      ['that is enough', null],
      ['it hangs', 'to see whether it lives'],
    ]);
    const rejected = await bots('resume', 'days', '--reason', 'x');
    expect(rejected).toMatchObject({ code: 6, stderr: expect.stringContaining('resume-all') });
    expect(await bots('resume-all', '--reason', 'x')).toMatchObject({ code: 0 });
  },
  60_000,
);

test('exits with 7 and lists the deployments that could not be verified', async () => {
  const task_id = await startTrading();
  await database.execute(
    `create function keep() returns trigger language plpgsql as 'begin return null; end';
     create trigger keep before update on bot_deployments for each row execute function keep()`,
  );
  const shown = await bots('halt', 'days', '--reason', 'x');
  expect(shown.code).toBe(7);
  expect(shown.stdout).toMatch(/running +deployment_not_halted/);
  expect(shown.stderr).toMatch(/1 of 1 deployment could not be verified/);
  const report = await answerOf<HaltReport>(7, 'halt', 'days', '--reason', 'x');
  expect(report).toMatchObject({
    verified: false,
    deployments: [{ task_id, faults: ['deployment_not_halted'] }],
  });
  await database.execute('drop trigger keep on bot_deployments');
  expect(await answerOf<HaltReport>(0, 'halt', 'days', '--reason', 'x')).toMatchObject({
    verified: true,
  });
  expect((await tasks('list')).stdout).toMatch(new RegExp(`${task_id} +paper +days v1 +halted `));
  expect((await tasks('get', task_id)).stdout).toMatch(/ halted /);
  await bots('resume', 'days', '--reason', 'x');
}, 60_000);

const OVER = 'the drill is over';

test.runIf(isAtLength)(
  'a drill halts a bot of its own and leaves only its archived bot',
  async () => {
    const drill = await answerOf<{ bot: string; verified_ms: number; report: HaltReport }>(
      0,
      'drill',
    );
    expect(drill).toMatchObject({ verified_ms: expect.any(Number), report: { verified: true } });
    expect(drill.report.deployments).toHaveLength(1);
    const { bots: all } = await answerOf<{ bots: BotSummary[] }>(0, 'list');
    expect(all.map(({ slug, status }) => [slug, status])).toEqual([
      ['days', 'active'],
      [drill.bot, 'archived'],
    ]);
    const { halts } = await answerOf<{ halts: Halt[] }>(0, 'halts');
    expect(halts.filter(({ lifted_at }) => lifted_at === null)).toEqual([]);

    // The halt waits for the orders of a session that no process runs.
    process.kill(worker.pid, 'SIGSTOP');
    const halting = bots('drill');
    await vi.waitFor(
      async () => {
        const { bots: now } = await answerOf<{ bots: BotSummary[] }>(
          0,
          'list',
          '--status',
          'active',
        );
        expect(now).toHaveLength(2);
      },
      { timeout: 20_000, interval: 200 },
    );
    process.listeners('SIGINT').at(-1)!('SIGINT');
    expect(await halting).toMatchObject({ code: 130, stdout: '' });
    process.kill(worker.pid, 'SIGCONT');
    const { halts: both } = await answerOf<{ halts: Halt[] }>(0, 'halts');
    expect(both.slice(0, 2).map((halt) => halt.lift_reason)).toEqual([OVER, OVER]);

    const wrong = await bots('drill', '--data', 'catalog://NOBODY');
    expect(wrong).toMatchObject({ code: 3, stderr: expect.stringContaining('NOBODY') });
    const { bots: after } = await answerOf<{ bots: BotSummary[] }>(0, 'list', '--status', 'active');
    expect(after.map(({ slug }) => slug)).toEqual(['days']);
  },
  60_000,
);

test.runIf(isAtLength)(
  'a drill creates no bot while all bots are halted, and cleans up if all are halted during it',
  async () => {
    const slugs = async (...words: string[]): Promise<string[]> => {
      const { bots: now } = await answerOf<{ bots: BotSummary[] }>(0, 'list', ...words);
      return now.map(({ slug }) => slug);
    };
    const before = await slugs();
    // Makes the drill wait for its session.
    process.kill(worker.pid, 'SIGSTOP');
    const drilling = bots('drill');
    await vi.waitFor(async () => expect(await slugs('--status', 'active')).toHaveLength(2), {
      timeout: 20_000,
      interval: 200,
    });
    await bots('halt-all', '--reason', 'enough');
    process.kill(worker.pid, 'SIGCONT');
    expect((await drilling).code).not.toBe(0);
    const archived = await slugs('--status', 'archived');
    const drilled = archived.find((slug) => !before.includes(slug));

    const told = /^All bots have been halted since \S+ by \S+: enough$/m;
    expect((await bots('list')).stdout).toMatch(told);
    expect((await bots('get', 'days')).stdout).toMatch(told);
    const known = await slugs();
    const rejected = await bots('drill');
    expect(rejected).toMatchObject({ code: 6, stdout: '' });
    expect(rejected.stderr).toMatch(/all bots have been halted since \S+: enough\n.*resume-all/);
    expect(await slugs()).toEqual(known);
    await bots('resume-all', '--reason', 'x');
    expect((await bots('list')).stdout).not.toMatch(/halted/);
    expect((await bots('get', drilled!)).stdout).toMatch(
      /^The bot has been halted since .*: the drill/m,
    );
    expect(await bots('resume', drilled!, '--reason', 'x')).toMatchObject({ code: 0 });
  },
  60_000,
);
