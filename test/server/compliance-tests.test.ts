import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { exampleDocument } from '../../src/api/bots.ts';
import type { ConformanceResult, StressResult } from '../../src/api/compliance-tests.ts';
import type { Task } from '../../src/api/tasks.ts';
import { createTestBot } from '../../src/compliance/tests/test-bot.ts';
import { testFigures } from '../../src/server/console/test-figures.ts';
import { appendEvents } from '../../src/events/append.ts';
import { startTaskRunner, type TaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

let server: TestApp;
let bearer: string;
let runner: TaskRunner | undefined;

beforeEach(async () => {
  server = await newTestApp();
  bearer = await server.bearer('read', 'write', 'halt');
  runner = undefined;
});
afterEach(async () => {
  await runner?.stop();
  await server.close();
});

const send = (method: string, path: string, body?: unknown, headers = {}): Promise<Answer> =>
  server.send(method, path, { headers: { authorization: bearer, ...headers }, body });

async function correct(): Promise<Record<string, unknown>> {
  const file = join(import.meta.dirname, '../compliance/bots/correct.yaml');
  return parse(await readFile(file, 'utf8')) as Record<string, unknown>;
}

async function resultOf(path: string, body: object): Promise<Record<string, unknown>> {
  const { tasks, log } = server.services;
  runner ??= startTaskRunner(tasks, {
    workers: 2,
    paperSessions: 1,
    timeoutMs: 5000,
    testBot: createTestBot(tasks),
    log,
  });
  const started = await send('POST', path, body);
  expect(started).toMatchObject({ status: 202, body: { status: 'queued' } });
  const { task_id } = started.body as Task;
  expect(started.headers.get('location')).toBe(`/tasks/${task_id}`);
  runner.wake();
  return vi.waitFor(
    async () => {
      const answer = await send('GET', `/tasks/${task_id}/result`);
      expect(answer.status).toBe(200);
      return answer.body as Record<string, unknown>;
    },
    { timeout: 55_000, interval: 50 },
  );
}

it.runIf(isAtLength)('a conformance test of a bot without limits fails', async () => {
  await send('POST', '/bots', { document: exampleDocument('sma', 10) });
  await send('POST', '/bots/sma/halt', { reason: 'a test' });
  const cases = ['C04', 'A03'];
  const result = await resultOf('/bots/sma/conformance', { cases });
  expect(result).toMatchObject({
    environment: 'simulated_venue',
    discharges_art6: false,
    venue_report: null,
    stale: false,
    seed: 1,
    counts: { fail: 1, pass: 1, not_run: 38 },
    cases: [
      { id: 'A03', status: 'pass', reason: null },
      { id: 'C04', status: 'fail', reason: expect.any(String) },
    ],
  });
  const { run_id } = result as unknown as ConformanceResult;
  expect(await shown(result)).toContain('C04');
  const files = ['conformance.json', 'evidence.ndjson'];
  expect((await send('GET', `/tasks/${run_id}/files`)).body).toEqual({ files });
  expect((await send('GET', `/tasks/${run_id}`)).body).toMatchObject({
    kind: 'conformance',
    input: { seed: 1, cases: ['A03', 'C04'] },
    progress: { done: 2, total: 2 },
  });
  expect((await send('GET', '/bots/sma/deployments')).body).toMatchObject({
    items: [{ target: 'test', status: 'success', result_summary: { counts: { fail: 1 } } }],
  });

  const report = '/bots/sma/risk/validation-report';
  const testing = async () => {
    const { body } = await send('GET', report);
    return (body as { testing: { conformance: { value: unknown } } }).testing.conformance.value;
  };
  expect(await testing()).toMatchObject([{ run_id, stale: false, not_passed: [{ id: 'C04' }] }]);
  const changed = { document: exampleDocument('sma', 12) };
  await send('PUT', '/bots/sma', changed, { 'if-match': '*' });
  const moved = { stale: true, stale_reasons: ['spec has changed since the test'] };
  expect((await send('GET', `/tasks/${run_id}/result`)).body).toMatchObject(moved);
  expect(await testing()).toMatchObject([{ run_id, ...moved }]);
});

/** The result as shown in the console. */
async function shown(result: Readonly<Record<string, unknown>>): Promise<string> {
  const page = await testFigures(result);
  return page?.valueOf() as string;
}

const RUN = '0198c0de-0000-7000-8000-00000000eeee';

/** Records a running production deployment with this number of orders at once. */
async function produce(bot_id: string, orders: number, isNew = false): Promise<void> {
  const { storage } = server.services.identity;
  const { now } = server;
  await storage.write(async (tx) => {
    if (isNew) {
      const ids = { deployment_id: RUN, task_id: RUN, bot_id, version: 1 };
      const open = { created_at: now - 60_000, ended_at: null, result_summary: null };
      await tx
        .insertInto('bot_deployments')
        .values({ ...ids, ...open, target: 'k8s', status: 'running' })
        .execute();
    }
    const payload = { order: 1, symbol: 'SPX' };
    const order = { kind: 'order.submitted', version: 1, run_id: RUN, occurred_at: now, payload };
    await appendEvents(
      tx,
      bot_id,
      now,
      Array.from({ length: orders }, () => order),
    );
  });
}

it.runIf(isAtLength)(
  'a stress test applies twice the peaks of the bot, outside production, and becomes stale when a peak comes too close',
  async () => {
    const { body } = await send('POST', '/bots', { document: await correct() });
    const { id: bot_id } = body as { id: string };
    await produce(bot_id, 2, true);
    server.now += 1000;
    const result = await resultOf('/bots/correct/stress', { duration_s: 60, seed: 7 });
    expect(result).toMatchObject({
      schema: 'stress/1',
      environment: 'simulated_venue',
      discharges_art6: false,
      venue_report: null,
      bot_ref: 'correct',
      version: 1,
      seed: 7,
      scope: 'bot',
      basis: 'observed_partial',
      multiplier: 2,
      // The verdict depends on the machine, except that the hold was too short.
      verdict: expect.not.stringMatching(/^pass$/),
      reasons: expect.arrayContaining([expect.stringContaining('held for only 60 s')]),
      passes: [{ limits: 'on' }, { limits: 'lifted' }],
      isolation: {
        before: { bots: 1, deployments: 1 },
        after: { bots: 1, deployments: 1 },
        logs_kept: true,
        config_unchanged: true,
        orders_of_test: 0,
      },
    });
    const { run_id } = result as unknown as StressResult;
    expect((await send('GET', `/tasks/${run_id}/files`)).body).toEqual({ files: ['stress.json'] });
    expect((await send('GET', `/tasks/${run_id}`)).body).toMatchObject({
      progress: { done: 500, total: 500 },
    });
    expect(await shown(result)).toContain('observed_partial');

    await produce(bot_id, 40);
    server.now += 1000;
    expect((await send('GET', `/tasks/${run_id}/result`)).body).toMatchObject({
      stale: true,
      stale_reasons: expect.arrayContaining([expect.stringContaining('live peak: 40 messages')]),
    });
  },
);

it('a test is started once for repeated requests, and rejected if it is invalid', async () => {
  const document = await correct();
  await send('POST', '/bots', { document });
  const headers = { 'idempotency-key': 'k' };
  const stress = () => send('POST', '/bots/correct/stress', { declared_peak: 4 }, headers);
  const [first, second] = [await stress(), await stress()];
  expect(second).toMatchObject({ status: 202, body: first.body });
  expect(second.headers.get('idempotency-replayed')).toBe('true');
  expect((await send('GET', '/tasks')).body).toMatchObject({
    items: [
      {
        kind: 'stress',
        input: { seed: 1, scope: 'bot', duration_s: 1800, multiplier: 2, declared_peak: 4 },
      },
    ],
  });
  expect(await send('POST', '/bots/correct/conformance', { cases: ['A03', 'A99'] })).toMatchObject({
    status: 400,
    body: { code: 'invalid_request', errors: [{ code: 'unknown_case', pointer: '/cases/1' }] },
  });
  expect(await send('POST', '/bots/correct/stress', { multiplier: 1 })).toMatchObject({
    status: 400,
  });
  const huge = { declared_peak: 9000, multiplier: 3 };
  expect(await send('POST', '/bots/correct/stress', huge)).toMatchObject({
    status: 400,
    body: { code: 'invalid_request', errors: [{ pointer: '/declared_peak' }] },
  });
  expect(await send('POST', '/bots/correct/conformance', { version: 2 })).toMatchObject({
    status: 404,
  });
  const { metadata, spec } = document as { metadata: object; spec: object };
  const research = {
    ...document,
    metadata: { ...metadata, slug: 'papers' },
    spec: { ...spec, kind: 'research' },
  };
  expect(await send('POST', '/bots', { document: research })).toMatchObject({ status: 201 });
  expect(await send('POST', '/bots/papers/conformance', {})).toMatchObject({
    status: 422,
    body: { code: 'invalid_spec', errors: [{ code: 'not_trading', pointer: '/spec/kind' }] },
  });
});
