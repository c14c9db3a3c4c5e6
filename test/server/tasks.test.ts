import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exampleDocument, type BotDetail } from '../../src/api/bots.ts';
import type { Task, TaskProgress } from '../../src/api/tasks.ts';
import { serverSentEvents } from '../../src/client/server-sent-events.ts';
import { startTaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

let server: TestApp;
let reader: string;
let writer: string;

beforeEach(async () => {
  server = await newTestApp();
  [reader, writer] = await Promise.all([server.bearer('read'), server.bearer('write')]);
  await fillCatalogue(server.services.tasks.catalogueDir, 1);
  await post('/bots', { document: exampleDocument('sma', 10) });
});

afterEach(() => server.close());

const get = (path: string): Promise<Answer> =>
  server.send('GET', path, { headers: { authorization: reader } });

const post = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
  server.send('POST', path, { headers: { authorization: writer, ...headers }, body });

const archive = (): Promise<Answer> =>
  server.send('DELETE', '/bots/sma', { headers: { authorization: writer, 'if-match': '*' } });

async function start(body: object = {}): Promise<string> {
  const answer = await post('/bots/sma/backtest', body);
  expect(answer).toMatchObject({ status: 202, body: { status: 'queued' } });
  const { task_id } = answer.body as Task;
  expect(answer.headers.get('location')).toBe(`/tasks/${task_id}`);
  return task_id;
}

async function follow(task_id: string, last?: string) {
  const answer = await server.app.request(`/tasks/${task_id}/events`, {
    headers: { authorization: reader, ...(last !== undefined && { 'last-event-id': last }) },
  });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  return Array.fromAsync(serverSentEvents(answer.body!), ({ id, data }) => ({
    id,
    task: JSON.parse(data) as TaskProgress,
  }));
}

describe('a backtest', () => {
  it('is queued, can be followed to its end, and stores its result and files', async () => {
    const task_id = await start({ version: 1, params: { fast: 12 }, to: '2000-09-30' });
    const { tasks, log } = server.services;
    const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 100, timeoutMs: 5000, log });
    const told = await follow(task_id);
    expect(told.at(-1)!.task).toMatchObject({
      status: 'success',
      progress: { done: 274, total: 274 },
      error: null,
    });
    expect(await follow(task_id, told.at(-1)!.id)).toEqual([]);
    await runner.stop();

    const { body } = await get(`/tasks/${task_id}`);
    expect(body).toMatchObject({
      task_id,
      kind: 'backtest',
      version: 1,
      status: 'success',
      input: { params: { fast: 12 }, to: '2000-09-30' },
      attempts: 1,
      ended_at: '2026-01-02T03:04:05Z',
    });
    const result = await get(`/tasks/${task_id}/result`);
    expect(result).toMatchObject({ status: 200, body: { run_id: task_id, bot: { slug: 'sma' } } });
    const { body: list } = await get(`/tasks/${task_id}/files`);
    const { files } = result.body as { files: string[] };
    expect(files).toHaveLength(7);
    expect(list).toEqual({ files });
    const { headers } = await get(`/tasks/${task_id}/files/equity.parquet`);
    expect(headers.get('content-type')).toBe('application/octet-stream');
    const equity = await get(`/tasks/${task_id}/files/equity.csv`);
    expect(equity).toMatchObject({ status: 200, body: /^time,equity,drawdown\n(.+\n){274}$/ });
    expect(equity.headers.get('content-disposition')).toBe('attachment');
    const { body: deployments } = await get('/bots/sma/deployments');
    const summary = { hashes: (result.body as { hashes: object }).hashes };
    expect(deployments).toMatchObject({
      items: [{ target: 'backtest', status: 'success', task_id, result_summary: summary }],
    });
    expect((await get('/bots/sma')).body).toMatchObject({ status: 'active' });
  });

  it.runIf(isAtLength)(
    'has a finding when its window extends beyond the data, and is rejected when it contains no bar',
    async () => {
      const task_id = await start({ from: '1990-01-01', to: '2000-09-30' });
      const { tasks, log } = server.services;
      const runner = startTaskRunner(tasks, {
        workers: 1,
        paperSessions: 100,
        timeoutMs: 5000,
        log,
      });
      await follow(task_id);
      await runner.stop();
      expect((await get(`/tasks/${task_id}/result`)).body).toMatchObject({
        findings: expect.arrayContaining([
          expect.objectContaining({ code: 'window_beyond_data', severity: 'warning' }),
        ]) as object,
      });
      for (const window of [{ from: '2030-01-01' }, { to: '1999-12-31' }]) {
        expect(await post('/bots/sma/backtest', window)).toMatchObject({
          status: 422,
          body: {
            errors: [
              {
                code: 'data_not_found',
                detail: /no bars in the window: it begins at 2000-01-01 and ends at 2000-10-26/,
              },
            ],
          },
        });
      }
    },
  );

  it('is started once for repeated requests', async () => {
    const headers = { 'idempotency-key': 'k' };
    const send = () => post('/bots/sma/backtest', { params: { fast: 12 } }, headers);
    const [first, second] = [await send(), await send()];
    expect(second).toMatchObject({ status: 202, body: first.body });
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect(second.headers.get('location')).toBe(first.headers.get('location'));
    expect((await get('/tasks')).body).toMatchObject({ items: [first.body] });
    expect(await post('/bots/sma/backtest', {}, headers)).toMatchObject({ status: 422 });
  });

  it('is rejected if it cannot run', async () => {
    const wrong = await post('/bots/sma/backtest', { params: { fast: 90 }, form: '2000-01-01' });
    expect(wrong).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/form', suggestion: 'from' }] },
    });
    const unfit = await post('/bots/sma/backtest', { params: { fsat: 1 } });
    expect(unfit).toMatchObject({
      status: 422,
      body: { code: 'invalid_spec', errors: [{ pointer: '/params/fsat', suggestion: 'fast' }] },
    });
    const none = { status: 404, body: { code: 'not_found' } };
    expect(await post('/bots/none/backtest', {})).toMatchObject(none);
    expect(await post('/bots/sma/backtest', { version: 9 })).toMatchObject(none);
    expect(await archive()).toMatchObject({ status: 204 });
    const archived = { status: 409, body: { code: 'conflict', reason: 'archived' } };
    expect(await post('/bots/sma/backtest', {})).toMatchObject(archived);
    expect((await get('/tasks')).body).toEqual({ items: [], next_cursor: null });
  });

  it('is listed with its bot while it is pending or running', async () => {
    const older = await start();
    server.now += 1;
    const newer = await start();
    const task = (task_id: string) => ({ task_id, status: 'pending', target: 'backtest' });
    expect((await get('/bots/sma')).body).toMatchObject({
      active_deployments: [task(newer), task(older)],
      active_deployment_count: 2,
    });
    await post(`/tasks/${newer}/cancel`);
    expect((await get('/bots/sma')).body).toMatchObject({
      active_deployments: [task(older)],
      active_deployment_count: 1,
    });
    await server.services.tasks.storage.write(async (tx) => {
      const row = await tx.selectFrom('bot_deployments').selectAll().executeTakeFirstOrThrow();
      const active = { ...row, status: 'pending', ended_at: null } as const;
      const rows = Array.from({ length: 119 }, (_, n) => ({
        ...active,
        deployment_id: `more-${n}`,
        task_id: `more-${n}`,
      }));
      await tx.insertInto('bot_deployments').values(rows).execute();
    });
    const { body } = (await get('/bots/sma')) as { body: BotDetail };
    expect(body.active_deployments).toHaveLength(100);
    expect(body.active_deployment_count).toBe(120);
  });

  it.runIf(isAtLength)('prevents the bot from being archived until it has ended', async () => {
    const task_id = await start();
    const active = { status: 409, body: { code: 'conflict', reason: 'deployment_active' } };
    expect(await archive()).toMatchObject(active);
    await post(`/tasks/${task_id}/cancel`);
    expect(await archive()).toMatchObject({ status: 204 });
  });

  it('is rejected if its dataset is no longer in the catalogue', async () => {
    await post('/bots', { document: documentOn('spy', 'SPY', '1d') });
    expect(await post('/bots/spy/backtest', {})).toMatchObject({
      status: 422,
      body: {
        errors: [
          { code: 'data_not_found', pointer: '/spec/data/source', suggestion: 'catalog://SPX' },
        ],
      },
    });
  });
});

describe('tasks', () => {
  it('are listed by bot and status, page by page', async () => {
    await post('/bots', { document: exampleDocument('other', 10) });
    const first = await start();
    server.now += 1;
    const second = await start();
    await post('/bots/other/backtest', {});
    await post(`/tasks/${first}/cancel`);
    const idsAt = async (query: string) => {
      const { items, next_cursor } = (await get(`/tasks?${query}`)).body as {
        items: Task[];
        next_cursor: string | null;
      };
      return { ids: items.map(({ task_id }) => task_id), next_cursor };
    };
    expect((await idsAt('bot=sma')).ids).toEqual([second, first]);
    expect((await idsAt('bot=sma&status=canceled')).ids).toEqual([first]);
    const page = await idsAt('bot=sma&limit=1');
    expect(page.ids).toEqual([second]);
    const rest = await idsAt(`bot=sma&limit=1&cursor=${page.next_cursor}`);
    expect(rest).toEqual({ ids: [first], next_cursor: null });
    expect(await get(`/tasks?cursor=${page.next_cursor}`)).toMatchObject({ status: 400 });
    expect(await get('/tasks?bot=none')).toMatchObject({ status: 404 });
  });

  it('are canceled at once while queued, and then have no result', async () => {
    const task_id = await start();
    expect(await get(`/tasks/${task_id}/result`)).toMatchObject({
      status: 409,
      body: { reason: 'not_ended' },
    });
    const canceled = await post(`/tasks/${task_id}/cancel`);
    expect(canceled).toMatchObject({ status: 200, body: { status: 'canceled' } });
    expect(await post(`/tasks/${task_id}/cancel`)).toMatchObject({ body: canceled.body });
    expect(await get(`/tasks/${task_id}/result`)).toMatchObject({
      status: 409,
      body: { reason: 'no_result' },
    });
    expect((await get(`/tasks/${task_id}/files`)).body).toEqual({ files: [] });
    expect(await follow(task_id)).toMatchObject([{ task: { status: 'canceled' } }]);
  });

  it('are not found if they do not exist, and require their scopes', async () => {
    for (const path of ['', '/events', '/result', '/files', '/files/equity.csv']) {
      expect(await get(`/tasks/none${path}`)).toMatchObject({ status: 404 });
    }
    expect(await post('/tasks/none/cancel')).toMatchObject({ status: 404 });
    expect(await get('/bots/none/deployments')).toMatchObject({ status: 404 });
    const headers = { authorization: reader };
    for (const path of ['/bots/sma/backtest', '/tasks/none/cancel']) {
      const answer = await server.send('POST', path, { headers, body: {} });
      expect(answer).toMatchObject({ status: 403, body: { code: 'not_allowed' } });
    }
    const other = { headers: { authorization: writer } };
    expect(await server.send('GET', '/tasks', other)).toMatchObject({ status: 403 });
  });
});
