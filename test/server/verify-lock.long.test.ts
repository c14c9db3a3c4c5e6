import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import type { Task } from '../../src/api/tasks.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { createApp } from '../../src/server/app.ts';
import type { App } from '../../src/server/services.ts';
import { fillCatalogue, replaceDays } from '../fleet/tasks/market.ts';
import { strategyThat } from '../trading/sandbox/bundles.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

let server: TestApp;
let app: App;
let runner: TaskRunner;
let authorization: string;

beforeAll(async () => {
  server = await newTestApp();
  const { log } = server.services;
  const customCode = { memoryMb: 256, timeoutMs: 5000 };
  const tasks = { ...server.services.tasks, customCode };
  app = createApp({ ...server.services, tasks });
  authorization = await server.bearer('read', 'write');
  await fillCatalogue(tasks.catalogueDir, 1);
  await send('POST', '/bots', { document: exampleDocument('sma', 10) });
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 100, timeoutMs: 5000, log });
});

afterAll(async () => {
  await runner.stop();
  await server.close();
});

async function send(method: string, path: string, sent?: unknown): Promise<Answer> {
  const headers = { authorization, 'content-type': 'application/json' };
  const body = sent === undefined ? null : JSON.stringify(sent);
  const answer = await app.request(path, { method, headers, body });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

const start = (body: object, bot = 'sma'): Promise<Answer> =>
  send('POST', `/bots/${bot}/backtest`, body);

async function backtest(body: object, bot?: string): Promise<Task> {
  const { task_id } = (await start(body, bot)).body as Task;
  runner.wake();
  return vi.waitFor(
    async () => {
      const task = (await send('GET', `/tasks/${task_id}`)).body as Task;
      expect(task).not.toMatchObject({ ended_at: null });
      return task;
    },
    { timeout: 20_000, interval: 50 },
  );
}

describe('a backtest with verify_lock', () => {
  it('repeats the locked result, and fails when the data were replaced', async () => {
    const params = { slow: 40, fast: 12 };
    const first = await backtest({ params });
    server.now += 300 * 86_400_000;
    const again = { version: 1, params: { fast: 12, slow: 40 }, verify_lock: true };
    const same = await backtest(again);
    expect(same).toMatchObject({ status: 'success', input: { verify_lock: true } });

    await replaceDays(server.services.tasks.catalogueDir, (rows) => rows.slice(0, -1));
    const drifted = {
      status: 'failed',
      error: {
        code: 'lock_drift',
        detail: `the backtest differs from the lock of task ${first.task_id}: data of SPX: changed`,
      },
    };
    expect(await backtest(again)).toMatchObject(drifted);
    // To use the new data, run a backtest without verify_lock; it does not move the lock.
    expect(await backtest({ params })).toMatchObject({ status: 'success' });
    expect(await backtest(again)).toMatchObject(drifted);
  });

  it('is rejected before a first successful backtest with the same values', async () => {
    const unlocked = { status: 409, body: { code: 'conflict', reason: 'not_locked' } };
    expect(await start({ verify_lock: true })).toMatchObject(unlocked);
    await backtest({});
    expect(await start({ verify_lock: true, params: {} })).toMatchObject({ status: 202 });
    expect(await start({ verify_lock: true, to: '2000-06-30' })).toMatchObject(unlocked);
  });

  it('fails for unsaved code, which it compares with the code of the version', async () => {
    const document = exampleDocument('own', 10);
    const strategy = { module: './own.ts' };
    const own = { ...document, spec: { ...(document['spec'] as object), strategy } };
    const files = { 'own.ts': strategyThat('broker.target(instruments[0], 1);') };
    expect(await send('POST', '/bots', { document: own, files })).toMatchObject({ status: 201 });
    const { task_id } = await backtest({}, 'own');
    const changed = { 'own.ts': strategyThat('broker.target(instruments[0], 0.5);') };
    expect(await backtest({ files: changed, verify_lock: true }, 'own')).toMatchObject({
      status: 'failed',
      error: {
        code: 'lock_drift',
        detail: `the backtest differs from the lock of task ${task_id}: strategy file own.ts: changed`,
      },
    });
  });

  it('reports errors in its body', async () => {
    expect(await start({ verify_lock: 'yes' })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/verify_lock' }] },
    });
    expect(await start({ verify_lok: true })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/verify_lok', suggestion: 'verify_lock' }] },
    });
  });
});
