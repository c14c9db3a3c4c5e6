import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import threads, { type WorkerOptions } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ConformanceResult } from '../../src/api/compliance-tests.ts';
import { testResultAnswer } from '../../src/cli/show-tests.ts';
import { newWorld, type World } from '../identity/people.ts';
import { tradingDocument } from '../fleet/parity/play.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

let world: World;
let server: ServerHere;
let directory: string;
let token: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  directory = await mkdtemp(join(tmpdir(), 'service-local-tests-'));
  token = await (await world.newPerson()).token('read', 'write');
  server = await serveHere(world.database, {});
  const file = join(directory, 'sma.json');
  await writeFile(file, JSON.stringify(tradingDocument('sma', 10)));
  assert.equal((await run('bots', 'create', '-f', file)).code, 0);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const run = (...words: readonly string[]): Promise<Result> =>
  inProcess(words, { env: { ...server.env, SERVICE_LOCAL_TOKEN: token } });

test.runIf(isAtLength)(
  'a bot without limits fails with the failed cases and the place of the evidence',
  async () => {
    const tried = await run('bots', 'conformance', 'sma', '--case', 'C04,A03', '--wait');
    expect(tried).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('1 case failed: C04'),
    });
    expect(tried.stdout).toMatch(/^A03 +pass .*9\(3\)\(a\)/m);
    expect(tried.stdout).toMatch(/^C04 +FAIL /m);
    expect(tried.stdout).toMatch(/^C04 FAIL: .*limit/m);
    expect(tried.stdout).toContain(
      'NOT RUN: 38 cases. A case that is not run does not count as passed.',
    );
    expect(tried.stdout).toContain(
      'this replaces no conformance test at a venue under Article 6 of RTS 6',
    );
  },
);

test.runIf(isAtLength)('a passed test prints one document and writes its files', async () => {
  const args = ['bots', 'conformance', 'sma', '--case', 'A03', '--seed', '7', '--wait', '--json'];
  const passed = await run(...args);
  expect(passed).toMatchObject({ code: 0 });
  const result = JSON.parse(passed.stdout) as ConformanceResult;
  expect(result).toMatchObject({ seed: 7, counts: { pass: 1, not_run: 39 }, stale: false });
  const shown = await run('tasks', 'result', result.run_id, '--out', directory);
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^A03 +pass/m) });
  expect(await readFile(join(directory, 'evidence.ndjson'), 'utf8')).toContain('"case":"A03"');
});

test('a test without --wait can be canceled like any task', async () => {
  const started = await run('bots', 'stress', 'sma', '--json');
  expect(started).toMatchObject({ code: 0 });
  const { task_id } = JSON.parse(started.stdout) as { task_id: string };
  expect(await run('tasks', 'cancel', task_id)).toMatchObject({ code: 0 });
  expect(await run('tasks', 'result', task_id, '--wait')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('canceled'),
  });
  expect(await run('bots', 'stress', 'sma', '--multiplier', '1')).toMatchObject({ code: 2 });
  expect(await run('bots', 'stress', 'sma', '--duration', '59')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--duration: '59' is not a whole number from 60 to 86400"),
  });
  expect(await run('bots', 'conformance', 'sma', '--case', 'A99')).toMatchObject({ code: 3 });
});

test.runIf(isAtLength).each([['stress'], ['conformance', '--case', 'A03']])(
  'a %s test without the package ccxt fails with a remedy',
  async (verb, ...options) => {
    const { Worker } = threads;
    // A thread resolves packages by itself.
    const hook = `import Module from 'node:module';
      const resolve = Module._resolveFilename;
      Module._resolveFilename = (name, ...rest) => resolve(name === 'ccxt' ? 'ccxt-is-missing' : name, ...rest);`;
    const execArgv = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`];
    threads.Worker = class extends Worker {
      constructor(file: URL, given: WorkerOptions) {
        super(file, { ...given, execArgv });
      }
    };
    syncBuiltinESMExports();
    try {
      expect(await run('bots', verb, 'sma', ...options, '--wait')).toMatchObject({
        code: 6,
        stderr: expect.stringMatching(/requires the package ccxt[^]*npm install ccxt/),
      });
    } finally {
      threads.Worker = Worker;
      syncBuiltinESMExports();
    }
  },
);

test('exits with 5 if a test was not passed, and with 8 if the host was too busy for a verdict', () => {
  const codeOf = (result: object) => testResultAnswer({ ...result })?.failure?.code;
  const stress = (verdict: string) => ({ schema: 'stress/1', verdict, reasons: ['assumed'] });
  expect(['pass', 'provisional', 'fail'].map((verdict) => codeOf(stress(verdict)))).toEqual([
    undefined,
    'gate_not_met',
    'gate_not_met',
  ]);
  expect(testResultAnswer(stress('inconclusive'))?.failure).toMatchObject({
    code: 'inconclusive',
    exitCode: 8,
    message: expect.stringContaining('the host was too busy for a verdict'),
  });
  const isolation = { logs_kept: true, orders_of_test: 0 };
  const cases = (...all: readonly string[]) => ({
    schema: 'conformance/1',
    isolation,
    cases: all.map((status, at) => ({ id: `A0${at}`, status })),
  });
  expect(codeOf(cases('pass', 'not_applicable'))).toBeUndefined();
  expect(codeOf(cases('pass', 'inconclusive'))).toBe('gate_not_met');
  const touched = { ...cases('pass'), isolation: { ...isolation, orders_of_test: 1 } };
  expect(codeOf(touched)).toBe('gate_not_met');
});
