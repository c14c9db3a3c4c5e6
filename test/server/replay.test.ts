import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { BotParity, RunReplay } from '../../src/api/replay.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { startPaper, stopPaper, type PaperRequest } from '../../src/fleet/tasks/paper.ts';
import { startTaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { startBacktest } from '../../src/fleet/tasks/tasks.ts';
import { play, tradingDocument } from '../fleet/parity/play.ts';
import { fillCatalogue, replaceDays } from '../fleet/tasks/market.ts';
import { haltBot } from '../../src/fleet/halts/halt.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

let catalogue: string;
let server: TestApp;
let reader: string;
let writer: string;

beforeAll(async () => {
  catalogue = await mkdtemp(join(tmpdir(), 'service-local-catalogue-'));
  await fillCatalogue(catalogue, 1);
});

afterAll(() => rm(catalogue, { recursive: true }));

beforeEach(async () => {
  server = await newTestApp();
  [reader, writer] = await Promise.all([server.bearer('read'), server.bearer('write')]);
  await cp(catalogue, server.services.tasks.catalogueDir, { recursive: true });
  await put('POST', '/bots', 10);
});

afterEach(() => server.close());

const put = (method: string, path: string, fast: number): Promise<Answer> =>
  server.send(method, path, {
    headers: { authorization: writer, 'if-match': '*' },
    body: { document: tradingDocument('sma', fast) },
  });

const post = (path: string, body: object): Promise<Answer> =>
  server.send('POST', path, { headers: { authorization: reader }, body });

const replay = async (run_id: string): Promise<RunReplay> => {
  const answer = await post('/bots/sma/replay', { run_id });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body as RunReplay;
};

const parity = async (body: object = {}): Promise<BotParity> => {
  const answer = await post('/bots/sma/parity', body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.body as BotParity;
};

/** A paper session that has finished its part. */
async function session(
  asked: Parameters<typeof play>[2] = {},
  request: PaperRequest = {},
): Promise<string> {
  const { tasks } = server.services;
  const { task_id } = await startPaper(tasks, 'operator', 'sma', { ...request, speed: 'max' });
  await play(tasks, task_id, asked);
  return task_id;
}

/** `hashes.events` of an equivalent backtest. */
async function eventsHash(request: object): Promise<string> {
  const { tasks, log } = server.services;
  const { task_id } = await startBacktest(tasks, 'operator', 'sma', request);
  const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 100, timeoutMs: 5000, log });
  const path = `/tasks/${task_id}/events`;
  await (await server.app.request(path, { headers: { authorization: reader } })).text();
  await runner.stop();
  const headers = { authorization: reader };
  const { body } = await server.send('GET', `/tasks/${task_id}/result`, { headers });
  return (body as Summary).hashes.events;
}

const alter = (condition: string): Promise<void> =>
  server.execute(
    `update bot_events set payload = replace(payload, 'buy', 'sell') where ${condition}`,
  );

describe('re-running a session', () => {
  it.runIf(isAtLength)(
    'gives the same result over its recorded bars, even if the catalogue has changed',
    async () => {
      const params = { fast: 12 };
      const run_id = await session({ end: 'success' }, { params, to: '2000-09-30' });
      const events_hash = await eventsHash({ params, to: '2000-09-30' });
      await replaceDays(server.services.tasks.catalogueDir, (rows) => rows.slice(150));
      const again = await replay(run_id);
      expect(again).toEqual({
        run_id,
        bot_id: expect.any(String),
        version: 1,
        matches: true,
        bars: 274,
        events: expect.toSatisfy((count: number) => count > 5),
        events_hash,
        first_difference: null,
        fault: null,
      });
    },
  );

  it('gives the same result with orders canceled at the end, and while the session is running', async () => {
    const stopped = await session({ end: 'stop', untilItOrders: true });
    const running = await session({ change: (steps) => steps.slice(0, 100) });
    expect(await replay(running)).toMatchObject({ matches: true, bars: 100 });
    // Each run has its own events, although they share a log.
    expect(await replay(stopped)).toMatchObject({ matches: true, bars: 96 });
  });

  it('reports an event that was altered', async () => {
    const run_id = await session({ end: 'success' });
    const condition = `kind = 'order.submitted' and seq > 100`;
    await alter(`seq = (select min(seq) from bot_events where ${condition})`);
    const { matches, fault, events_hash, first_difference } = await replay(run_id);
    expect({ matches, events_hash, first_difference }).toEqual({
      matches: false,
      events_hash: null,
      first_difference: null,
    });
    expect(fault).toMatchObject({ fault: 'altered', seq: expect.toSatisfy((seq) => seq > 100) });
    expect(await parity()).toMatchObject({ equal: false, fault, first_difference: null });
  });

  it('reports a missing end of the log', async () => {
    const run_id = await session({ end: 'success' });
    await server.execute(`delete from bot_events where kind = 'run.ended'`);
    expect(await replay(run_id)).toMatchObject({ matches: false, fault: { fault: 'missing' } });
  });
});

describe('comparing a session with a backtest', () => {
  it.runIf(isAtLength)(
    'uses the newest session and a backtest of the same version, parameters and window by default',
    async () => {
      await put('PUT', '/bots/sma', 11);
      await session({ end: 'success' }, { version: 1 });
      server.now += 1;
      const request = { version: 1, params: { fast: 12 }, from: '2000-02-01', to: '2000-09-30' };
      const run_id = await session({ end: 'success' }, request);
      const found = await parity();
      expect(found).toEqual({
        run_id,
        bot_id: expect.any(String),
        version: 1,
        running: false,
        against: 'catalogue',
        equal: true,
        bars: 243,
        events: (await replay(run_id)).events,
        first_difference: null,
        fault: null,
      });
      expect(await parity({ run_id, params: { fast: 5 } })).toMatchObject({
        equal: false,
        first_difference: { cause: 'params' },
      });
      expect(await parity({ run_id, version: 2, params: { fast: 5 } })).toMatchObject({
        equal: false,
        first_difference: { cause: 'version' },
      });
    },
  );

  it.runIf(isAtLength)('reports a bar that was replaced in the catalogue', async () => {
    await session({ end: 'success' });
    await replaceDays(server.services.tasks.catalogueDir, (rows) =>
      rows.map((row, at) => (at === 50 ? [...row.slice(0, 5), 999] : row) as typeof row),
    );
    expect(await parity()).toMatchObject({
      equal: false,
      bars: 50,
      first_difference: {
        cause: 'data',
        time: '2000-02-20T00:00:00.000Z',
        detail: 'the bar of SPX differs: volume 1000 in the session, 999 in the catalogue',
        recorded: { symbol: 'SPX', volume: 1000 },
        backtest: { symbol: 'SPX', volume: 999 },
      },
    });
  });

  it('reports bars that the session did not receive', async () => {
    const gap = { after: '2000-02-19T00:00:00.000Z', before: '2000-02-21T00:00:00.000Z' };
    await session({ end: 'success', gap, change: (steps) => steps.toSpliced(50, 1) });
    expect(await parity()).toMatchObject({
      bars: 50,
      first_difference: {
        cause: 'gap',
        time: '2000-02-20T00:00:00.000Z',
        detail: 'the session received no bar of SPX at this time and recorded data.gap',
        recorded: null,
        backtest: { symbol: 'SPX' },
      },
    });
  });

  it.runIf(isAtLength)(
    'reports where a session was stopped, and compares a running session up to now',
    async () => {
      await session({ end: 'stop', change: (steps) => steps.slice(0, 38) });
      expect(await parity()).toMatchObject({
        running: false,
        bars: 38,
        first_difference: { cause: 'stop', time: '2000-02-08T00:00:00.000Z', recorded: null },
      });
      server.now += 1;
      await session({ untilItOrders: true });
      expect(await parity()).toMatchObject({ running: true, equal: true, bars: 96 });

      // The session is halted before a requested stop takes effect.
      const { tasks, log } = server.services;
      await stopPaper(tasks, 'operator', (await parity()).run_id);
      const halted = await haltBot({ ...tasks, log }, 'operator', 'sma', 'it is enough');
      expect(halted).toMatchObject({ verified: true });
      expect(await parity()).toMatchObject({
        running: false,
        first_difference: {
          cause: 'halt',
          detail: 'the bot was halted, and its orders were canceled',
          recorded: { kind: 'order.canceled' },
          backtest: null,
        },
      });
    },
  );
});

describe('a re-run that is impossible', () => {
  it('is rejected with the reason', async () => {
    const none = { status: 404, body: { code: 'not_found' } };
    expect(await post('/bots/sma/parity', {})).toMatchObject(none);
    const run_id = await session();
    for (const path of ['replay', 'parity']) {
      expect(await post(`/bots/none/${path}`, { run_id })).toMatchObject(none);
      expect(await post(`/bots/sma/${path}`, { run_id: 'none' })).toMatchObject(none);
    }
    await server.send('POST', '/bots', {
      headers: { authorization: writer },
      body: { document: tradingDocument('other', 10) },
    });
    expect(await post('/bots/other/replay', { run_id })).toMatchObject(none);
    expect(await post('/bots/sma/parity', { version: 9 })).toMatchObject(none);
    const { tasks } = server.services;
    const { task_id } = await startBacktest(tasks, 'operator', 'sma', {});
    const backtest = { run_id: task_id };
    const refused = { status: 409, body: { code: 'conflict', reason: 'no_session' } };
    expect(await post('/bots/sma/replay', backtest)).toMatchObject(refused);
    expect(await post('/bots/sma/parity', backtest)).toMatchObject(refused);
  });

  it('reports where the body is invalid, and requires the scope', async () => {
    const run_id = await session();
    const pointing = (pointer: string, suggestion?: string) => ({
      status: 400,
      body: { errors: [{ pointer, ...(suggestion !== undefined && { suggestion }) }] },
    });
    expect(await post('/bots/sma/replay', { run: run_id })).toMatchObject(pointing('/run'));
    expect(await post('/bots/sma/replay', { run_id, until_seq: 1 })).toMatchObject(
      pointing('/run_id'),
    );
    expect(await post('/bots/sma/parity', { versoin: 1 })).toMatchObject(
      pointing('/versoin', 'version'),
    );
    expect(await post('/bots/sma/parity', { params: { fsat: 1 } })).toMatchObject({
      status: 422,
      body: { code: 'invalid_spec', errors: [{ pointer: '/params/fsat', suggestion: 'fast' }] },
    });
    for (const path of ['replay', 'parity']) {
      const init = { headers: { authorization: writer }, body: { run_id } };
      const refused = { status: 403, body: { code: 'not_allowed' } };
      expect(await server.send('POST', `/bots/sma/${path}`, init)).toMatchObject(refused);
    }
  });
});
