import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { BotDetail, BotEvent } from '../../src/api/bots.ts';
import type { Task } from '../../src/api/tasks.ts';
import { backtest } from '../../src/backtest/backtest.ts';
import { writeRun } from '../../src/backtest/files.ts';
import { loadBot } from '../../src/bots/load.ts';
import { prepare } from '../../src/bots/prepare.ts';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import { createApp } from '../../src/server/app.ts';
import type { App, Services } from '../../src/server/services.ts';
import { startTaskRunner, type TaskRunner } from '../../src/tasks/runner.ts';
import { strategyThat } from '../sandbox/bundles.ts';
import { documentOn, fillCatalogue } from '../tasks/market.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';

let server: TestApp;
let tasks: Services['tasks'];
let app: App;
let runner: TaskRunner | undefined;
let headers: Record<string, string>;

beforeEach(async () => {
  server = await newTestApp();
  await fillCatalogue(server.services.tasks.catalogueDir, 1);
  tasks = { ...server.services.tasks, customCode: { memoryMb: 256, timeoutMs: 1000 } };
  app = createApp({ ...server.services, tasks });
  const authorization = await server.bearer('read', 'write', 'trade');
  headers = { authorization, 'content-type': 'application/json', 'if-match': '*' };
});

afterEach(async () => {
  await runner?.stop();
  runner = undefined;
  await server.close();
});

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await app.request(path, { method, headers, ...text });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

function documentOf(params: object = {}) {
  const document = documentOn('own', 'SPX', '1d');
  const risk = Object.fromEntries(
    Object.keys(NO_RISK_LIMITS).map((name) => [name, { unlimited: 'a test' }]),
  );
  const spec = document['spec'] as { readonly data: object };
  const data = { ...spec.data, to: '2000-05-31' };
  const strategy = { module: './strategies/own.ts', params };
  return { ...document, spec: { ...spec, data, strategy, risk } };
}

/** What the built-in strategy is, in two files. */
async function crossover(): Promise<Record<string, string>> {
  const source = new URL('../../src/engine/strategies/sma-crossover.ts', import.meta.url);
  const text = await readFile(source, 'utf8');
  const body = text
    .replaceAll(/^import .*\n/gm, '')
    .replace('export const smaCrossover = ', 'export default ');
  const from = 'service-local/strategy';
  return {
    'strategies/own.ts': `import { defineStrategy } from '${from}';\nimport { Crossover, integer, Sma } from '../lib/parts.ts';\n${body}`,
    'lib/parts.ts': `export { Crossover, integer, Sma } from '${from}';\n`,
  };
}

const create = (files: object, params = {}): Promise<Answer> =>
  send('POST', '/bots', { document: documentOf(params), files });

function work(): void {
  const { log } = server.services;
  runner = startTaskRunner(tasks, { workers: 1, paperSessions: 10, timeoutMs: 1000, log });
}

async function ended(path: string, body: object): Promise<Task> {
  const started = await send('POST', path, body);
  expect(started).toMatchObject({ status: 202 });
  if (runner === undefined) work();
  return endOf((started.body as Task).task_id);
}

function endOf(task_id: string): Promise<Task> {
  return vi.waitFor(
    async () => {
      const task = (await send('GET', `/tasks/${task_id}`)).body as Task;
      expect(task.ended_at).not.toBeNull();
      return task;
    },
    { timeout: 25_000, interval: 20 },
  );
}

/** The hash of the events that a backtest of the same files comes to on one's own machine. */
async function localHash(files: Record<string, string>, params: object): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-own-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      const at = join(directory, path);
      await mkdir(dirname(at), { recursive: true });
      await writeFile(at, text);
    }
    const file = join(directory, 'bot.yaml');
    await writeFile(file, JSON.stringify(documentOf(params)));
    const { catalogueDir } = tasks;
    const { job } = await prepare(loadBot(file), { catalogueDir, assertions: [] });
    const outcome = await backtest(job, { runId: 'local', timeoutMs: 5000 });
    await mkdir(join(directory, 'run'));
    return (await writeRun(join(directory, 'run'), job, outcome)).summary.hashes.events;
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('a server takes no code unless it is told to, and says how', async () => {
  const authorization = headers['authorization']!;
  const body = { document: documentOf(), files: await crossover() };
  const off = await server.send('POST', '/bots', { headers: { authorization }, body });
  expect(off).toMatchObject({
    status: 422,
    body: {
      code: 'invalid_spec',
      errors: [
        { pointer: '/spec/strategy/module', detail: expect.stringContaining('custom_code') },
      ],
    },
  });
});

test('code is part of a version, given back, and comes to what it does elsewhere', async () => {
  const files = await crossover();
  const params = { fast: 5, slow: 20 };
  const made = await create(files, params);
  expect(made).toMatchObject({ status: 201 });
  const { version_hash } = made.body as BotDetail;
  const put = (sent: object) => send('PUT', '/bots/own', { document: documentOf(params), ...sent });
  expect((await put({ files })).body).toMatchObject({ current_version: 1, version_hash });
  expect((await send('GET', '/bots/own/versions/1/files')).body).toEqual({ files });

  const done = await ended('/bots/own/backtest', {});
  expect(done).toMatchObject({ status: 'success', error: null });
  const result = (await send('GET', `/tasks/${done.task_id}/result`)).body as {
    readonly hashes: { readonly events: string };
    readonly trades: { readonly count: number };
  };
  expect(result.trades.count).toBeGreaterThan(0);
  expect(result.hashes.events).toBe(await localHash(files, params));

  const paper = await ended('/bots/own/paper/start', { speed: 'max' });
  expect(paper).toMatchObject({ status: 'success', error: null });
  const session = await send('GET', `/tasks/${paper.task_id}/result`);
  expect(session.body).toMatchObject({ hashes: { events: result.hashes.events } });

  const changed = { ...files, 'lib/parts.ts': `${files['lib/parts.ts']}// other\n` };
  const next = (await put({ files: changed })).body as BotDetail;
  expect(next.current_version).toBe(2);
  expect(next.version_hash).not.toBe(version_hash);
});

test('what is wrong with code is told when it is sent', async () => {
  const own = 'strategies/own.ts';
  for (const [files, told] of [
    [{ [own]: strategyThat('', 'import "node:fs";') }, /cannot import 'node:fs'/],
    [{ [own]: 'export default {;' }, /own\.ts/],
    [{ 'own.ts': strategyThat('') }, /is none of the files/],
    [{ [own]: strategyThat(''), '../x.ts': '' }, /is no path/],
    [{ [own]: strategyThat(''), 'a.ts': '/'.repeat(97 * 1024) }, /more than 98304/],
    [{ [own]: strategyThat('', 'for (;;);') }, /not loaded within/],
  ] as const) {
    const detail = expect.stringMatching(told) as string;
    const body = { errors: [{ pointer: '/spec/strategy/module', detail }] };
    expect(await create(files)).toMatchObject({ status: 422, body });
  }
  expect(await create({ [own]: strategyThat('') }, { fast: 1 })).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: '/spec/strategy/params/fast', code: 'unknown_param' }] },
  });
  expect(await send('POST', '/bots', { document: documentOf() })).toMatchObject({ status: 422 });
});

test('code that was altered in the database does not run', async () => {
  const files = { 'strategies/own.ts': strategyThat('') };
  await create(files);
  const altered = { 'strategies/own.ts': strategyThat('broker.target(instruments[0], 1)') };
  const started = await send('POST', '/bots/own/backtest', {});
  const text = JSON.stringify(altered).replaceAll("'", "''");
  await server.execute(`update bundles set files = '${text}'`);
  work();
  const { task_id } = started.body as Task;
  expect(await endOf(task_id)).toMatchObject({
    status: 'failed',
    error: { code: 'bundle_tampered' },
  });
  expect(await send('POST', '/bots/own/backtest', {})).toMatchObject({
    status: 500,
    body: { code: 'bundle_tampered' },
  });
});

test('code that hangs fails its task in time', async () => {
  await create({ 'strategies/own.ts': strategyThat('if (instruments[0].count === 5) for (;;);') });
  const failed = await ended('/bots/own/backtest', {});
  const error = { code: 'strategy_timeout', detail: expect.stringContaining('bar 5 ') as string };
  expect(failed).toMatchObject({ status: 'failed', error });
  expect(await ended('/bots/own/paper/start', { speed: 'max' })).toMatchObject({
    status: 'failed',
    error,
  });
});

test('a session whose code throws ends with its orders canceled', async () => {
  const order = `broker.order({ instrument: instruments[0], side: 'buy', quantity: 1, type: 'limit', limit: 1 });`;
  const body = `if (instruments[0].count === 1) { ${order} } else throw new Error('mine');`;
  await create({ 'strategies/own.ts': strategyThat(body) });
  const failed = await ended('/bots/own/paper/start', { speed: 'max' });
  const detail = expect.stringMatching(/bar 2 .*mine/) as string;
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'strategy_failed', detail } });
  const { items } = (
    await send('GET', '/bots/own/state/events?kind=order.submitted,order.canceled')
  ).body as { readonly items: readonly BotEvent[] };
  expect(items.map(({ kind }) => kind)).toEqual(['order.submitted', 'order.canceled']);
});
