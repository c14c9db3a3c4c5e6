import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import type { Task } from '../../src/api/tasks.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { fillCatalogue, replaceDays } from '../fleet/tasks/market.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

let server: TestApp;
let runner: TaskRunner;
let authorization: string;

beforeAll(async () => {
  server = await newTestApp();
  const { tasks, log } = server.services;
  authorization = await server.bearer('read', 'write');
  await fillCatalogue(tasks.catalogueDir, 1);
  await send('POST', '/bots', { document: exampleDocument('sma', 10) });
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 100, timeoutMs: 5000, log });
});

afterAll(async () => {
  await runner.stop();
  await server.close();
});

const send = (method: string, path: string, body?: unknown): Promise<Answer> =>
  server.send(method, path, { headers: { authorization }, body });

const start = (body: object): Promise<Answer> => send('POST', '/bots/sma/backtest', body);

async function backtest(body: object): Promise<Task> {
  const { task_id } = (await start(body)).body as Task;
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
