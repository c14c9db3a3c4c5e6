import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile as readText } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { createBot, updateBot } from '../../../src/fleet/registry/bots.ts';
import { runConformance } from '../../../src/compliance/conformance/run-conformance.ts';
import type { ConformanceReport } from '../../../src/compliance/tests/result.ts';
import { proveIsolation, takeFingerprint } from '../../../src/compliance/stress/isolation.ts';
import { addStaleness } from '../../../src/compliance/tests/staleness.ts';
import { startConformance } from '../../../src/compliance/tests/start.ts';
import { createTestBot } from '../../../src/compliance/tests/test-bot.ts';
import { createLog } from '../../../src/base/log.ts';
import { openStorage } from '../../../src/storage/storage.ts';
import { listFiles, readFile } from '../../../src/fleet/tasks/task-files.ts';
import { claimTasks } from '../../../src/fleet/tasks/lifecycle.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import {
  cancelTask,
  getResult,
  getTask,
  type TaskService,
} from '../../../src/fleet/tasks/tasks.ts';
import { mainlyOn, newTables, type TestDatabase } from '../../storage/databases.ts';
import { correct } from '../bots/bots.ts';
import { isAtLength } from '../../length.ts';

/** Worker id of a process that does not exist on this machine. */
const DEAD = `${hostname()}/${2 ** 30}/0198c0de-0000-7000-8000-00000000aaaa`;
const SEED = 7;
const CASES = ['A03', 'C05'];

describe.each(mainlyOn('postgres'))('a conformance test on %s', (kind) => {
  let database: TestDatabase;
  let service: TaskService;
  let runners: TaskRunner[];
  let document: Record<string, unknown>;

  beforeEach(async () => {
    database = await newTables(kind);
    runners = [];
    const storage = await openStorage(database.location);
    service = { storage, clock: () => Date.UTC(2026, 6), catalogueDir: '/nowhere' };
    document = parse(
      await readText(join(import.meta.dirname, '../bots/correct.yaml'), 'utf8'),
    ) as typeof document;
    await createBot(service, 'operator', { document });
  });
  afterEach(async () => {
    for (const runner of runners) await runner.stop();
    await service.storage.close();
    await database.remove();
  });

  const run = (workers: number): TaskRunner => {
    const runner = startTaskRunner(service, {
      workers,
      paperSessions: 1,
      timeoutMs: 5000,
      testBot: createTestBot(service),
      log: createLog(() => {}, false),
    });
    runners.push(runner);
    return runner;
  };
  const find = (task_id: string) => getTask(service.storage.read, task_id);
  const until = (task_id: string, status: string) =>
    vi.waitFor(async () => assert.equal((await find(task_id)).status, status), {
      timeout: 30_000,
      interval: 50,
    });
  const start = (cases?: string[]) =>
    startConformance(service, 'operator', 'correct', { seed: SEED, cases });

  test.runIf(isAtLength)(
    'gives the same evidence in any process, and becomes stale when the limits change',
    async () => {
      const { task_id } = await start(CASES);
      if (kind === 'sqlite') {
        const first = run(2);
        await until(task_id, 'running');
        // A stopping server returns the task to the queue, and the next one runs it again.
        await first.stop();
        expect(await find(task_id)).toMatchObject({ status: 'queued', attempts: 0 });
      } else {
        const { storage, clock } = service;
        await storage.write((tx) => claimTasks(tx, clock(), DEAD, 'conformance', 1));
      }
      run(kind === 'sqlite' ? 1 : 2);
      await until(task_id, 'success');

      const { read } = service.storage;
      const kept = JSON.parse(await getResult(read, task_id)) as ConformanceReport;
      const here = await runConformance(correct, { seed: SEED, cases: CASES });
      expect(kept).toMatchObject({
        schema: 'conformance/1',
        run_id: task_id,
        bot_ref: 'correct',
        version: 1,
        environment: 'simulated_venue',
        discharges_art6: false,
        venue_report: null,
        counts: { pass: 2, fail: 0, not_run: 38 },
        evidence_hash: here.evidence_hash,
        lock: { strategy: 'sma_crossover', limits: { max_order_value: '20000' } },
        isolation: { logs_kept: true, config_unchanged: true, orders_of_test: 0 },
      });
      expect(await listFiles(read, task_id)).toEqual(['conformance.json', 'evidence.ndjson']);
      const evidence = await text(await readFile(read, task_id, 'evidence.ndjson'));
      const ofCase = evidence.split('\n').filter((line) => line.includes('"case":"A03"'));
      expect(
        createHash('sha256')
          .update(`${ofCase.join('\n')}\n`)
          .digest('hex'),
      ).toBe(kept.cases[0]!.evidence_hash);
      const whole = JSON.parse(await text(await readFile(read, task_id, 'conformance.json'))) as {
        cases: { parts: unknown[] }[];
      };
      expect(whole.cases[0]!.parts.length).toBeGreaterThan(0);

      const asRead = () => addStaleness(service, task_id, { ...kept });
      expect(await asRead()).toMatchObject({ stale: false, stale_reasons: [] });
      const spec = document['spec'] as { risk: object };
      const risk = { ...spec.risk, max_order_qty: '999' };
      const changed = { document: { ...document, spec: { ...spec, risk } } };
      const before = await takeFingerprint(service.storage, undefined, 1);
      await updateBot(service, 'operator', 'correct', () => true, changed);
      const after = await takeFingerprint(service.storage, undefined, 2);
      expect(await proveIsolation(service.storage, task_id, before, after)).toMatchObject({
        changed: ['operator applied version 2 of bot correct'],
      });
      expect(await asRead()).toMatchObject({
        stale: true,
        stale_reasons: ['limits has changed since the test', 'spec has changed since the test'],
      });
    },
  );

  test.runIf(kind === 'sqlite')('leaves no files when it is canceled while it runs', async () => {
    const { task_id } = await start();
    const runner = run(1);
    await until(task_id, 'running');
    await cancelTask(service, 'operator', task_id);
    runner.wake();
    await until(task_id, 'canceled');
    expect(await listFiles(service.storage.read, task_id)).toEqual([]);
  });
});
