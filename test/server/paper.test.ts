import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { BotEvent } from '../../src/api/bot-state.ts';
import type { TaskDetail } from '../../src/api/tasks.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { documentOn, fillCatalogue, replaceDays } from '../fleet/tasks/market.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { tradingDocument } from './trader.ts';
import { isAtLength } from '../length.ts';

const DAYS_PER_SECOND = 86_400;

let server: TestApp;
let runner: TaskRunner;
let tokens: Record<'read' | 'write' | 'trade', string>;

beforeAll(async () => {
  server = await newTestApp();
  const [read, write, trade] = await Promise.all([
    server.bearer('read'),
    server.bearer('write'),
    server.bearer('trade'),
  ]);
  tokens = { read, write, trade };
  const { tasks, log } = server.services;
  await fillCatalogue(tasks.catalogueDir, 1);
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 100, timeoutMs: 5000, log });
  Object.assign(tasks, { wake: runner.wake });
  await newBot('sma');
});
afterAll(async () => {
  await runner.stop();
  await server.close();
});

async function newBot(slug: string): Promise<void> {
  const made = await post('/bots', { document: tradingDocument(slug, 'SPX', '1d', 1) }, 'write');
  expect(made.status).toBe(201);
}

const get = (path: string): Promise<Answer> =>
  server.send('GET', path, { headers: { authorization: tokens.read } });

function post(
  path: string,
  body?: unknown,
  who: keyof typeof tokens = 'trade',
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return server.send('POST', path, { headers: { authorization: tokens[who], ...headers }, body });
}

async function start(slug: string, body: object): Promise<string> {
  const answer = await post(`/bots/${slug}/paper/start`, body);
  expect(answer).toMatchObject({ status: 202, body: { status: 'queued' } });
  const { task_id } = answer.body as TaskDetail;
  expect(answer.headers.get('location')).toBe(`/tasks/${task_id}`);
  return task_id;
}

const stop = (slug: string, task_id: string): Promise<Answer> =>
  post(`/bots/${slug}/paper/stop/${task_id}`);

const taskOf = async (task_id: string): Promise<TaskDetail> =>
  (await get(`/tasks/${task_id}`)).body as TaskDetail;

/** Resolves with the task once it satisfies the condition. */
async function until(task_id: string, isSo: (task: TaskDetail) => boolean): Promise<TaskDetail> {
  await vi.waitFor(async () => expect(isSo(await taskOf(task_id))).toBe(true), {
    timeout: 30_000,
    interval: 50,
  });
  return taskOf(task_id);
}

const ended = (task_id: string): Promise<TaskDetail> =>
  until(task_id, (task) => task.ended_at !== null);

async function eventsOf(slug: string, task_id: string): Promise<BotEvent[]> {
  const { body } = await get(`/bots/${slug}/state/events?limit=1000`);
  return (body as { items: BotEvent[] }).items.filter(({ run_id }) => run_id === task_id);
}

describe('a paper session', () => {
  it('runs to the end of its data and leaves a result', async () => {
    const task_id = await start('sma', { speed: 'max', to: '2000-06-30', params: { slow: 3 } });
    expect(await ended(task_id)).toMatchObject({
      kind: 'paper',
      status: 'success',
      input: { speed: 'max', to: '2000-06-30', params: { slow: 3 } },
      progress: { done: 182, total: 182 },
    });
    const { body: result } = await get(`/tasks/${task_id}/result`);
    const { window, orders } = result as Summary;
    expect(window).toMatchObject({ bars: 182 });
    expect(orders.filled).toBeGreaterThan(0);
    expect((await get('/bots/sma/deployments')).body).toMatchObject({
      items: [{ target: 'paper', status: 'success', task_id, result_summary: { window } }],
    });
    expect((await get('/bots/sma')).body).toMatchObject({ status: 'active' });
  });

  it.runIf(isAtLength)('records a gap in the data before the bars that come after it', async () => {
    const { catalogueDir } = server.services.tasks;
    await replaceDays(catalogueDir, (rows) => rows.toSpliced(40, 3));
    await newBot('gappy');
    const task_id = await start('gappy', { speed: 'max', to: '2000-03-31' });
    expect(await ended(task_id)).toMatchObject({ status: 'success' });
    const told = await eventsOf('gappy', task_id);
    const at = told.findIndex(({ kind }) => kind === 'data.gap');
    const before = '2000-02-13T00:00:00.000Z';
    expect(told[at]!.payload).toEqual({
      symbol: 'SPX',
      after: '2000-02-09T00:00:00.000Z',
      before,
      missing: 3,
    });
    expect(told[at + 1]).toMatchObject({ kind: 'data.bars', payload: { time: before } });
    expect(told.filter(({ kind }) => kind === 'data.gap')).toHaveLength(1);
    await replaceDays(catalogueDir, (rows) => rows);
  });

  it.runIf(isAtLength)(
    'is reported while it runs, and is stopped once for repeated requests',
    async () => {
      await newBot('slow');
      const task_id = await start('slow', { speed: DAYS_PER_SECOND * 10 });
      await until(task_id, ({ progress }) => progress.done >= 15);
      const { body } = await get('/bots/slow/state/snapshot');
      const sessions = { [task_id]: { status: 'running', version: 1 } };
      expect(body).toMatchObject({ state: { sessions } });
      expect((await get('/bots/slow')).body).toMatchObject({
        active_deployments: [{ task_id, target: 'paper', status: 'running' }],
      });
      expect(await stop('sma', task_id)).toMatchObject({
        status: 404,
        body: {
          code: 'not_found',
          detail: expect.stringContaining('does not belong to bot') as string,
        },
      });
      const asked = await Promise.all([stop('slow', task_id), stop('slow', task_id)]);
      expect(asked.map(({ status }) => status)).toEqual([200, 200]);
      const { ended_by_halt, ...task } = await ended(task_id);
      expect(ended_by_halt).toBe(null);
      expect(task).toMatchObject({ status: 'success', progress: { total: 300 } });
      expect(task.progress.done).toBeLessThan(300);
      expect((await get(`/tasks/${task_id}/result`)).body).toMatchObject({
        window: { bars: task.progress.done },
      });
      expect(await stop('slow', task_id)).toMatchObject({ status: 200, body: task });
      const told = await eventsOf('slow', task_id);
      expect(told.filter(({ kind }) => kind === 'run.stop_requested')).toHaveLength(1);
      expect(told.slice(-2)).toMatchObject([
        { kind: 'session.state', payload: { status: 'halted', working: [] } },
        { kind: 'run.ended', payload: { status: 'success', stopped: true } },
      ]);
      expect((await get('/bots/slow/state/snapshot')).body).toMatchObject({
        state: { sessions: {} },
      });
    },
  );

  it('that is canceled cancels its orders and has no result', async () => {
    await newBot('canceled');
    const task_id = await start('canceled', { speed: DAYS_PER_SECOND * 10 });
    await until(task_id, ({ progress }) => progress.done >= 5);
    await post(`/tasks/${task_id}/cancel`, undefined, 'write');
    expect(await ended(task_id)).toMatchObject({ status: 'canceled' });
    const told = await eventsOf('canceled', task_id);
    expect(told.slice(-2)).toMatchObject([
      { kind: 'session.state', payload: { status: 'halted', working: [] } },
      { kind: 'run.ended', payload: { status: 'canceled' } },
    ]);
    expect((await get(`/tasks/${task_id}/files`)).body).toEqual({ files: [] });
    expect((await get(`/tasks/${task_id}/result`)).status).toBe(409);
  });
});

describe('starting a paper session', () => {
  it('requires the scope trade, and so does stopping one', async () => {
    const none = randomUUID();
    for (const path of ['/bots/sma/paper/start', `/bots/sma/paper/stop/${none}`]) {
      const body = path.endsWith('start') ? {} : undefined;
      expect(await post(path, body, 'write')).toMatchObject({
        status: 403,
        body: { code: 'not_allowed', detail: expect.stringContaining('trade') as string },
      });
    }
  });

  it('requires an existing bot, and stopping requires an existing session', async () => {
    const missing = { status: 404, body: { code: 'not_found' } };
    expect(await post('/bots/nobody/paper/start', {})).toMatchObject(missing);
    expect(await stop('sma', randomUUID())).toMatchObject(missing);
    const backtest = await post('/bots/sma/backtest', {}, 'write');
    const { task_id } = backtest.body as TaskDetail;
    expect(await stop('sma', task_id)).toMatchObject({
      status: 409,
      body: { code: 'conflict', reason: 'not_paper' },
    });
    await post(`/tasks/${task_id}/cancel`, undefined, 'write');
  });

  it.each([
    [{ speed: 0 }, 400, '/speed', undefined],
    [{ speed: 'fast' }, 400, '/speed', undefined],
    [{ sped: 2 }, 400, '/sped', 'speed'],
    [{ live: {}, from: '2000-01-03' }, 400, '/live', undefined],
    [{ params: { fsat: 3 } }, 422, '/params/fsat', 'fast'],
    [{ from: 'soon' }, 422, '/from', undefined],
  ])('rejects the body %j', async (body, status, pointer, suggestion) => {
    const answer = await post('/bots/sma/paper/start', body);
    expect(answer.status).toBe(status);
    const { errors } = answer.body as { errors: readonly object[] };
    expect(errors).toEqual([
      expect.objectContaining({ pointer, ...(suggestion !== undefined && { suggestion }) }),
    ]);
  });

  it('requires a bot with risk limits', async () => {
    const document = { ...documentOn('bare', 'SPX', '1d') };
    await post('/bots', { document }, 'write');
    expect(await post('/bots/bare/paper/start', {})).toMatchObject({
      status: 422,
      body: { code: 'invalid_spec', errors: [{ code: 'missing_field', pointer: '/spec/risk' }] },
    });
  });

  it('starts one session for each Idempotency-Key', async () => {
    await newBot('once');
    const path = '/bots/once/paper/start';
    const key = { 'idempotency-key': randomUUID() };
    const first = await post(path, { speed: 24 }, 'trade', key);
    expect(first.status).toBe(202);
    const again = await post(path, { speed: 24 }, 'trade', key);
    expect(again).toMatchObject({ status: 202, body: first.body });
    expect((await post(path, { speed: 25 }, 'trade', key)).status).toBe(422);
    const { items } = (await get('/bots/once/deployments')).body as { items: object[] };
    expect(items).toHaveLength(1);
    await stop('once', (first.body as TaskDetail).task_id);
  });

  it('is rejected for an archived bot', async () => {
    await newBot('old');
    const headers = { authorization: tokens.write, 'if-match': '*' };
    expect((await server.send('DELETE', '/bots/old', { headers })).status).toBeLessThan(300);
    expect(await post('/bots/old/paper/start', {})).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    });
  });
});
