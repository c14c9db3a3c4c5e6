import { afterAll, beforeAll, expect, test } from 'vitest';
import { onnxFile } from '../../examples/models/onnx-file.ts';
import { execute } from '../../src/backtest/execute.ts';
import type { Summary } from '../../src/backtest/summary.ts';
import { readHostedSpec } from '../../src/bots/hosted.ts';
import { prepare } from '../../src/bots/prepare.ts';
import { hashOfLines } from '../../src/fleet/parity/rerun.ts';
import { openHosted, takeAllSteps } from '../../src/trading/sandbox/hosted-run.ts';
import type { App } from '../../src/server/services.ts';
import { startTaskRunner } from '../../src/fleet/tasks/task-runner.ts';
import { startPaper } from '../../src/fleet/tasks/paper.ts';
import { startBacktest } from '../../src/fleet/tasks/tasks.ts';
import { specOf, TANH } from '../bots/models/models.ts';
import { allowedToTrade, documentOn, fillCatalogue } from '../fleet/tasks/market.ts';
import { newTestApp, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

/** Learned rule: follows prices that fell and rose again. */
const BYTES = onnxFile({ ...TANH, weights: [{ name: 'w', dims: [2, 1], values: [9, -4] }] });
const FILE = 'models/m.onnx';
const SENT = { [FILE]: Buffer.from(BYTES).toString('base64') };
const MODEL = specOf(BYTES, {
  path: `./${FILE}`,
  inputs: [
    { indicator: 'return', params: { period: 3 } },
    { indicator: 'return', params: { period: 20 } },
  ],
});
const NAMED = { name: 'model_signal', params: { enter: 0, exit: 0 } };

/** Strategy code that does what `model_signal` does. */
const OWN = `import { defineStrategy } from 'service-local/strategy';
export default defineStrategy({
  name: 'own', description: 'Of a test.', params: {}, signals: ['score'],
  create({ instruments: [instrument], broker }) {
    return {
      onBar() {
        const score = instrument.signal('score');
        const held = broker.position(instrument) > 0;
        if (!held && score >= 0) broker.target(instrument, 1);
        else if (held && score < 0) broker.target(instrument, 0);
      },
    };
  },
});
`;

/** `hashes.events` of the built-in strategy. */
let events: string;
let server: TestApp;
let app: App;
let headers: Record<string, string>;
let tasks: TestApp['services']['tasks'];

beforeAll(async () => {
  server = await newTestApp();
  ({ tasks } = server.services);
  ({ app } = server);
  const authorization = await server.bearer('read', 'write', 'trade');
  headers = { authorization, 'content-type': 'application/json' };
  await fillCatalogue(tasks.catalogueDir, 1);
});
afterAll(() => server.close());

async function ask(method: string, path: string, body?: object) {
  const answer = await app.request(path, { method, headers, body: JSON.stringify(body) ?? null });
  return { status: answer.status, body: (await answer.json()) as unknown };
}

function create(slug: string, files: object | undefined, changes: object = {}) {
  const document = allowedToTrade(documentOn(slug, 'SPX', '1d'));
  const spec = { ...(document['spec'] as object), ml_models: [MODEL], strategy: NAMED, ...changes };
  return ask('POST', '/bots', { document: { ...document, spec }, files });
}

test.runIf(isAtLength)(
  'a version with a model has the same events in a backtest, a session and a re-run',
  async () => {
    // No custom code runs for it.
    expect(await create('built-in', SENT)).toMatchObject({ status: 201 });
    const { log } = server.services;
    const runner = startTaskRunner(tasks, { workers: 1, paperSessions: 9, timeoutMs: 5000, log });
    try {
      const hashes: string[] = [];
      const backtest = await startBacktest(tasks, 'operator', 'built-in', {});
      const paper = await startPaper(tasks, 'operator', 'built-in', { speed: 'max' });
      for (const { task_id } of [backtest, paper]) {
        await (await app.request(`/tasks/${task_id}/events`, { headers })).text();
        const summary = (await ask('GET', `/tasks/${task_id}/result`)).body as Summary;
        expect(summary.lock.models).toEqual({
          runtime: expect.stringMatching(/^onnxruntime-web /),
          files: { m: MODEL.digest.slice('sha256:'.length) },
        });
        expect(summary.trades.count).toBeGreaterThan(5);
        hashes.push(summary.hashes.events);
      }
      const asked = { run_id: paper.task_id };
      const { body: again } = await ask('POST', '/bots/built-in/replay', asked);
      expect(again).toMatchObject({ matches: true, events_hash: hashes[0] });
      expect(new Set(hashes).size).toBe(1);
      events = hashes[0]!;
    } finally {
      await runner.stop();
    }
  },
);

test.runIf(isAtLength)(
  'custom code with a model receives only the output of the model',
  async () => {
    const strategy = { module: './own.ts', params: {} };
    const text = await app.request('/bots/built-in', { headers });
    const { document } = (await text.json()) as { document: { spec: object } };
    const own = { ...document, spec: { ...document.spec, strategy } };
    const hosted = readHostedSpec({ document: own, files: { ...SENT, 'own.ts': OWN } }, true);
    const run = await openHosted(hosted, { memoryMb: 256, timeoutMs: 5000 });
    try {
      const { catalogueDir } = tasks;
      const { job } = await prepare(run.bot, { catalogueDir, assertions: [] });
      await takeAllSteps(run, job.instruments);
      const { signals } = run;
      const { journal } = await execute({ ...job, signals }, { timeoutMs: 5000 });
      expect(hashOfLines([...journal.events()].map((event) => JSON.stringify(event)))).toBe(events);
    } finally {
      await run.close();
    }
  },
);

test('only authorized callers may send the larger requests of models, and the limit of the spec still applies', async () => {
  const body = JSON.stringify({ yaml: `# ${'x'.repeat(128 * 1024)}`, files: SENT });
  const statusOf = async (method: string, path: string, sender: object) =>
    (await app.request(path, { method, headers: { ...headers, ...sender }, body })).status;
  const reader = { authorization: await server.bearer('read') };
  const nobody = { authorization: 'Bearer none' };
  for (const [method, path] of [
    ['POST', '/bots'],
    ['PUT', '/bots/built-in'],
  ] as const) {
    expect(await statusOf(method, path, nobody)).toBe(401);
    expect(await statusOf(method, path, reader)).toBe(403);
  }
  expect(await ask('POST', '/bots', JSON.parse(body) as object)).toMatchObject({
    status: 413,
    body: { code: 'payload_too_large', detail: 'the spec has 131074 characters' },
  });
  // Other requests still have the small limit.
  const large = 'x'.repeat(129 * 1024);
  for (const path of ['/bots/built-in', '/knowledge/documents']) {
    const { status } = await app.request(path, { method: 'PATCH', headers, body: large });
    expect([path, status]).toEqual([path, 413]);
  }
});

test('faults in models are reported when they are sent', async () => {
  const other = { ...SENT, 'models/other.onnx': SENT[FILE] };
  const large = Buffer.alloc(512 * 1024 + 1).toString('base64');
  for (const [files, pointer, told] of [
    [undefined, '/0/path', /must be sent with the spec/],
    [{}, '/0/path', /must be sent with the spec/],
    [other, '', /"models\/other\.onnx" was sent, but no model/],
    [{ [FILE]: `${SENT[FILE]} ` }, '', /is not in base64/],
    [{ [FILE]: large }, '', /the models have 524289 bytes; at most 524288/],
    [{ [FILE]: 'AAAA' }, '/0/path', /is not an ONNX model/],
  ] as const) {
    const answer = await create('wrong', files);
    expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_spec' } });
    const { errors } = answer.body as { errors: { pointer: string; detail: string }[] };
    expect(errors[0]).toMatchObject({
      pointer: `/spec/ml_models${pointer}`,
      detail: expect.stringMatching(told),
    });
  }
  expect(await create('wrong', {}, { ml_models: undefined })).toMatchObject({
    body: { errors: [{ pointer: '/spec/ml_models', code: 'missing_signal' }] },
  });
});

test('a model is stored unchanged and is not part of the code', async () => {
  expect(await create('stored', SENT)).toMatchObject({ status: 201 });
  const { body } = await ask('GET', '/bots/stored/versions/1/files');
  expect(body).toEqual({ files: SENT });
  expect(await ask('GET', '/bots/stored/versions')).toMatchObject({
    body: { items: [{ bundle_hash: expect.stringMatching(/^[0-9a-f]{64}$/) }] },
  });
});
