import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleHash } from '../../src/bots/bundle.ts';
import { createBot } from '../../src/fleet/registry/bots.ts';
import { getRunnableVersion } from '../../src/fleet/registry/versions.ts';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import { createApp } from '../../src/server/app.ts';
import type { App } from '../../src/server/services.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { strategyThat, WAIT } from '../trading/sandbox/bundles.ts';
import { newTables } from '../storage/databases.ts';
import { documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

const OWN = 'strategies/own.ts';
const customCode = { memoryMb: 256, timeoutMs: 1000 };

let server: TestApp;
let app: App;
let headers: Record<string, string>;

beforeAll(async () => {
  server = await newTestApp();
  app = createApp({ ...server.services, tasks: { ...server.services.tasks, customCode } });
  const authorization = await server.bearer('read', 'write', 'trade');
  headers = { authorization, 'content-type': 'application/json' };
});
afterAll(() => server.close());

function documentOf(params: object = {}): Record<string, unknown> {
  const document = documentOn('own', 'SPX', '1d');
  const risk = Object.fromEntries(
    Object.keys(NO_RISK_LIMITS).map((name) => [name, { unlimited: 'a test' }]),
  );
  const strategy = { module: `./${OWN}`, params };
  return { ...document, spec: { ...(document['spec'] as object), strategy, risk } };
}

async function create(files: object | undefined, params = {}): Promise<Answer> {
  const body = JSON.stringify({ document: documentOf(params), files });
  const answer = await app.request('/bots', { method: 'POST', headers, body });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

test('a server rejects custom code by default, and says how to allow it', async () => {
  const body = { document: documentOf(), files: { [OWN]: strategyThat('') } };
  const off = await server.send('POST', '/bots', { headers, body });
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

test.runIf(isAtLength)('faults in custom code are reported when it is sent', async () => {
  for (const [files, told] of [
    [{ 'own.ts': strategyThat('') }, /is not among the files that were sent/],
    [
      { [OWN]: 'const x = 1;\nconst y: number = ;' },
      /own\.ts:2: SyntaxError: [^;]*; Correct the file/,
    ],
    [{ [OWN]: strategyThat(''), '../x.ts': '' }, /is not below the directory/],
    [{ [OWN]: strategyThat(''), 'a.ts': '/'.repeat(97 * 1024) }, /at most 98304 are allowed/],
    [{ [OWN]: strategyThat('', WAIT) }, /did not load within/],
    [undefined, /must be sent with the spec/],
  ] as const) {
    const detail = expect.stringMatching(told) as string;
    const body = { errors: [{ pointer: '/spec/strategy/module', detail }] };
    expect(await create(files)).toMatchObject({ status: 422, body });
  }
  expect(await create({ [OWN]: strategyThat('') }, { fast: 1 })).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: '/spec/strategy/params/fast', code: 'unknown_param' }] },
  });
});

test('a backtest accepts unsaved code from callers who may save it, and checks it', async () => {
  await fillCatalogue(server.services.tasks.catalogueDir, 1);
  const path = '/bots/own/backtest';
  expect(await create({ [OWN]: strategyThat('') })).toMatchObject({ status: 201 });
  const start = async (files: object, authorization = headers['authorization']!) => {
    const body = JSON.stringify({ files });
    const method = 'POST';
    const answer = await app.request(path, {
      method,
      headers: { ...headers, authorization },
      body,
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const files = { [OWN]: strategyThat('broker.target(instruments[0], 1);') };
  const { status, body } = await start(files);
  expect(status).toBe(202);
  const task = await server.send('GET', `/tasks/${String(body['task_id'])}`, { headers });
  expect(task.body).toMatchObject({ version: 1, input: { bundle_hash: bundleHash(files) } });
  const bot = await server.send('GET', '/bots/own', { headers });
  expect(bot.body).toMatchObject({ current_version: 1 });

  expect(await start(files, await server.bearer('read'))).toMatchObject({ status: 403 });
  const pointer = '/spec/strategy/module';
  expect(await start({ [OWN]: 'throw 1;' })).toMatchObject({
    status: 422,
    body: { code: 'invalid_spec', errors: [{ pointer }] },
  });
  const withoutCode = await server.send('POST', path, { headers, body: { files } });
  expect(withoutCode).toMatchObject({
    status: 422,
    body: { errors: [{ pointer, detail: expect.stringContaining('custom_code') }] },
  });
});

test('custom code is stored unchanged, and altered code does not run', async () => {
  const database = await newTables('sqlite');
  const storage = await openStorage(database.location);
  try {
    const registry = { storage, clock: Date.now, customCode };
    const files = { [OWN]: strategyThat("'it'") };
    await createBot(registry, 'operator', { document: documentOf(), files });
    expect(await getRunnableVersion(registry, 'own', 1)).toEqual({ document: documentOf(), files });
    const off = getRunnableVersion({ storage, clock: Date.now }, 'own', 1);
    await expect(off).rejects.toMatchObject({ code: 'invalid_spec' });
    await database.execute("update bundles set files = replace(files, 'it', 'that')");
    const altered = getRunnableVersion(registry, 'own', 1);
    await expect(altered).rejects.toMatchObject({ code: 'bundle_tampered' });
  } finally {
    await storage.close();
    await database.remove();
  }
});
