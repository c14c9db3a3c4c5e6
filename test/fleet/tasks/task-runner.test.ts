import type { TrialsRecord } from '../../../src/backtest/ledger/ledger-entry.ts';
import type { Summary } from '../../../src/backtest/summary.ts';
import { unpackTrials } from '../../../src/backtest/ledger/packed-trials.ts';
import { readTrials } from '../../../src/fleet/tasks/trial-entries.ts';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import { bundleHash, digestsOf } from '../../../src/bots/bundle.ts';
import { createBot, updateBot } from '../../../src/fleet/registry/bots.ts';
import { deleteOldUnsaved } from '../../../src/fleet/registry/unsaved-bundles.ts';
import { getRunnableVersion, listVersions } from '../../../src/fleet/registry/versions.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import { verifyEvents } from '../../../src/events/verify-events.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { createLog } from '../../../src/base/log.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { OutcomeUnknown, storageUnavailable } from '../../../src/storage/storage-errors.ts';
import { doBacktest } from '../../../src/fleet/tasks/backtest-work.ts';
import type { Claim } from '../../../src/fleet/tasks/claim.ts';
import { listFiles, readFile } from '../../../src/fleet/tasks/task-files.ts';
import {
  claimTasks,
  finishTask,
  returnToQueue,
  recoverTask,
} from '../../../src/fleet/tasks/lifecycle.ts';
import { recordHeartbeat } from '../../../src/fleet/tasks/heartbeats.ts';
import { listRunningTasks } from '../../../src/fleet/tasks/open-tasks.ts';
import { startPaper } from '../../../src/fleet/tasks/paper.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { announceWorker, fairShare } from '../../../src/fleet/tasks/session-share.ts';
import {
  cancelTask,
  getResult,
  getTask,
  listDeployments,
  startBacktest,
  type BacktestRequest,
  type Task,
  type TaskService,
} from '../../../src/fleet/tasks/tasks.ts';
import { DATABASES, newTables, type TestDatabase } from '../../storage/databases.ts';
import { documentOn, fillCatalogue, tradingDocument } from './market.ts';
import { isAtLength } from '../../length.ts';
import { strategyThat } from '../../trading/sandbox/bundles.ts';

/** In a process of this machine that there is not. */
const DEAD = `${hostname()}/${2 ** 30}/0198c0de-0000-7000-8000-00000000aaaa`;

/** On another machine. */
const ELSEWHERE = 'other-machine/1/0198c0de-0000-7000-8000-00000000bbbb';

const realNow = performance.now.bind(performance);
let advanced = 0;
/** Advances the clock of this process by `ms` at once. */
function advance(ms: number): void {
  advanced += ms;
  vi.spyOn(performance, 'now').mockImplementation(() => realNow() + advanced);
}
afterEach(() => {
  advanced = 0;
  vi.restoreAllMocks();
});

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-tasks-test-'));
  await fillCatalogue(catalogueDir, 60_000);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

let database: TestDatabase;
let storages: Storage[];
let service: TaskService;
let bot_id: string;
let runners: TaskRunner[];
let log: string[];
let now: number;

function useDatabase(kind: Storage['kind']): void {
  beforeEach(async () => {
    database = await newTables(kind);
    storages = [];
    runners = [];
    log = [];
    now = Date.UTC(2026, 0);
    service = await open();
    const document = exampleDocument('sma', 10);
    ({ bot_id } = await createBot(service, 'operator', { document }));
  });
  afterEach(async () => {
    for (const runner of runners) await runner.stop();
    for (const storage of storages) await storage.close();
    await database.remove();
  });
}

/** Another connection, as that of another server. */
async function open(): Promise<TaskService> {
  const storage = await openStorage(database.location);
  storages.push(storage);
  return { storage, clock: () => now, catalogueDir };
}

function run(on = service, timeoutMs = 5000): TaskRunner {
  const options = {
    workers: 2,
    paperSessions: 100,
    timeoutMs,
    log: createLog((line) => log.push(line), false),
  };
  const runner = startTaskRunner(on, options);
  runners.push(runner);
  return runner;
}

async function start(request: BacktestRequest = {}): Promise<string> {
  const { task_id } = await startBacktest(service, 'operator', 'sma', request);
  for (const runner of runners) runner.wake();
  return task_id;
}

async function claimAs(worker_id: string): Promise<Claim | undefined> {
  const claims = await service.storage.write((tx) => claimTasks(tx, now, worker_id, 'backtest', 1));
  return claims[0];
}

const find = (task_id: string): Promise<Task> => getTask(service.storage.read, task_id);

async function ended(task_id: string): Promise<Task> {
  await vi.waitFor(async () => expect(await find(task_id)).not.toMatchObject({ ended_at: null }), {
    timeout: 20_000,
    interval: 20,
  });
  return find(task_id);
}

async function runEvents(task_id: string) {
  const { events } = await readEvents(service.storage.read, bot_id, { after_seq: 0, limit: 100 });
  return events.filter(({ run_id }) => run_id === task_id);
}

/** A bot with the code `own.ts`. */
function ownDocument(): Record<string, unknown> {
  const document = documentOn('own', 'SPX', '1d');
  const strategy = { module: './own.ts' };
  return { ...document, spec: { ...(document['spec'] as object), strategy } };
}

it('a backtest reports the error of its strategy even if its log cannot be written', async () => {
  const file = join(catalogueDir, 'no-directory');
  await writeFile(file, '');
  const work = {
    runId: 'backtest',
    document: exampleDocument('sma', 10),
    changes: {},
    catalogueDir,
    // No time limit of a strategy can be 0, so that its run fails.
    timeoutMs: 0,
    directory: join(file, 'files'),
  };
  const lost: unknown[] = [];
  const ports = {
    onProgress() {},
    count: async () => ({
      earlier: { count: 0, sharpe_count: 0, sharpe_mean: null, sharpe_variance: null },
    }),
    onFailedFiles: () => expect.unreachable(),
    onLostFiles: (cause: unknown) => void lost.push(cause),
  };
  const { signal } = new AbortController();
  const failing = doBacktest(work, ports, signal);
  await expect(failing).rejects.toThrow('options.timeout');
  expect(lost).toMatchObject([{ code: 'ENOTDIR' }]);
});

describe.each(DATABASES)('tasks on %s', (kind) => {
  useDatabase(kind);

  it.runIf(isAtLength || kind === 'sqlite')(
    'a worker runs a backtest and stores its files, events and deployment',
    async () => {
      run();
      const task_id = await start({ params: { fast: 12 } });
      expect(await ended(task_id)).toMatchObject({
        status: 'success',
        attempts: 1,
        progress_done: 300,
        progress_total: 300,
      });
      const { read } = service.storage;
      const summary = JSON.parse(await getResult(read, task_id)) as {
        run_id: string;
        hashes: { events: string };
      };
      expect(summary.run_id).toBe(task_id);
      expect(await listFiles(read, task_id)).toHaveLength(7);
      const events = await text(await readFile(read, task_id, 'events.ndjson'));
      expect(createHash('sha256').update(events).digest('hex')).toBe(summary.hashes.events);
      expect(await text(await readFile(read, task_id, 'summary.json'))).toBe(
        `${JSON.stringify(summary, undefined, 2)}\n`,
      );
      await expect(readFile(read, task_id, 'other')).rejects.toMatchObject({ code: 'not_found' });

      const told = await runEvents(task_id);
      expect(told.map((event) => event.kind)).toEqual(['run.queued', 'run.started', 'run.ended']);
      const digest = { hashes: summary.hashes, metrics: { trades: expect.any(Number) } };
      expect(told.at(-1)!.payload).toMatchObject({ status: 'success', ...digest });
      const { items } = await listDeployments(read, 'sma', { limit: 10 });
      expect(items).toMatchObject([{ target: 'backtest', status: 'success', task_id }]);
      expect(JSON.parse(items[0]!.result_summary!)).toMatchObject(digest);
      expect(await verifyEvents(read, bot_id, 'head')).toMatchObject({
        state: { status: 'active' },
      });
      expect(log).toEqual([]);
    },
  );

  it.runIf(isAtLength)(
    'a backtest runs unsaved code without a new version, and the code is deleted after a time',
    async () => {
      service = { ...service, customCode: { memoryMb: 256, timeoutMs: 5000 } };
      const { storage } = service;
      const { read } = storage;
      const begin = (request: BacktestRequest) =>
        startBacktest(service, 'operator', 'own', request);
      const saved = { 'own.ts': strategyThat('') };
      const document = ownDocument();
      await createBot(service, 'operator', { document, files: saved });
      const files = { 'own.ts': strategyThat("broker.target(instruments[0], 1); log('unsaved');") };
      const { task_id } = await begin({ files, to: '2000-02-01' });
      const claims = await storage.write((tx) => claimTasks(tx, now, DEAD, 'backtest', 1, 3));
      expect(claims, 'of a worker that would run the saved code').toEqual([]);
      run();
      expect(await ended(task_id)).toMatchObject({ status: 'success', version: 1 });
      const summary = JSON.parse(await getResult(read, task_id)) as Summary;
      expect(summary.unsaved_bundle).toBe(bundleHash(files));
      expect(summary.lock.strategy).toEqual(digestsOf(files));
      expect(summary.orders.submitted).toBeGreaterThan(0);
      expect(await text(await readFile(read, task_id, 'log.txt'))).toMatch(
        /^2000-01-01T00:00:00Z unsaved\n/,
      );
      expect(await getRunnableVersion(service, 'own', 1)).toEqual({ document, files: saved });
      const { items } = await listVersions(read, 'own', { limit: 10 });
      expect(items).toHaveLength(1);
      // The run is no reference for the saved version.
      const verified = begin({ to: '2000-02-01', verify_lock: true });
      await expect(verified).rejects.toMatchObject({ reason: 'not_locked' });

      const other = await begin({ files: { 'own.ts': strategyThat("log('other');") } });
      await cancelTask(service, 'operator', other.task_id);
      await ended(other.task_id);
      await updateBot(service, 'operator', 'own', () => true, { document, files });
      await deleteOldUnsaved(storage, now);
      const left = await read.selectFrom('bundles').select('hash').execute();
      expect(left.map(({ hash }) => hash).toSorted()).toEqual(
        [saved, files].map(bundleHash).toSorted(),
      );
    },
  );

  it('a backtest without data or with invalid changes is rejected', async () => {
    await expect(start({ params: { fsat: 3 }, from: 'soon' })).rejects.toMatchObject({
      code: 'invalid_spec',
      problems: expect.arrayContaining([
        expect.objectContaining({ pointer: '/params/fsat', suggestion: 'fast' }),
        expect.objectContaining({ pointer: '/from' }),
      ]),
    });
    await expect(start({ version: 2 })).rejects.toMatchObject({ code: 'not_found' });
    const missing = { document: documentOn('sma', 'SPY', '1d') };
    await updateBot(service, 'operator', 'sma', () => true, missing);
    await expect(start()).rejects.toMatchObject({
      code: 'invalid_spec',
      problems: [{ code: 'data_not_found', suggestion: 'catalog://SPX' }],
    });
    expect(await listRunningTasks(service.storage.read)).toEqual([]);
  });

  it('a task of dead workers is restarted, with three attempts in all', async () => {
    const task_id = await start();
    const { storage } = service;
    for (const attempt of [1, 2, 3]) {
      const claim = (await claimAs(DEAD))!;
      expect(claim.attempts).toBe(attempt);
      const [task] = await listRunningTasks(storage.read);
      await storage.write((tx) => recoverTask(tx, task!, now));
      // A worker that was considered dead by mistake can no longer change the task.
      expect(await storage.write((tx) => recordHeartbeat(tx, claim, now, undefined, true))).toBe(
        false,
      );
      await storage.write((tx) => finishTask(tx, claim, now, { status: 'canceled' }, undefined));
      await storage.write((tx) => returnToQueue(tx, claim, now, 'server_stopped'));
    }
    const { status, error } = await find(task_id);
    expect(status).toBe('failed');
    expect(JSON.parse(error!)).toMatchObject({ reason: 'worker_died' });
    expect(await verifyEvents(storage.read, bot_id, 'head')).toMatchObject({ fault: undefined });
  });

  it('a task whose cancellation was requested is not restarted after its worker died', async () => {
    const { storage } = service;
    const [returned, dead] = [await start(), await start()];
    const claims = [(await claimAs(DEAD))!, (await claimAs(DEAD))!];
    for (const { task_id } of claims) await cancelTask(service, 'operator', task_id);
    const tasks = await listRunningTasks(storage.read);
    await storage.write((tx) =>
      returnToQueue(
        tx,
        claims.find((one) => one.task_id === returned)!,
        now,
        'server_stopped',
      ),
    );
    const lost = tasks.find(({ task_id }) => task_id === dead)!;
    await storage.write((tx) => recoverTask(tx, lost, now));
    for (const task_id of [returned, dead]) {
      expect(await find(task_id)).toMatchObject({ status: 'canceled' });
    }
  });

  it('the status of an ended task never changes', async () => {
    const task_id = await start();
    await cancelTask(service, 'operator', task_id);
    for (const table of ['tasks', 'bot_deployments']) {
      const change = `update ${table} set status = 'running' where task_id = '${task_id}'`;
      await expect(database.execute(change)).rejects.toThrow(/constraint/i);
    }
    expect(await claimAs(DEAD)).toBeUndefined();
  });
});

describe('tasks', () => {
  useDatabase('sqlite');

  it.runIf(isAtLength)(
    'a backtest that fails over its bars counts as a trial without a Sharpe ratio, once',
    async () => {
      // No time limit of a strategy can be 0, so that its run fails after its bars were read.
      run(service, 0);
      for (const task_id of [await start(), await start()]) {
        expect((await ended(task_id)).status).toBe('failed');
      }
      const { entries } = await readTrials(service.storage.read, 0, { count: 10, bytes: 1 });
      expect(entries).toMatchObject([{ seq: 1, kind: 'trials', count: 1, by: 'operator' }]);
      const { trials } = entries[0] as TrialsRecord;
      expect([...unpackTrials(trials)]).toMatchObject([{ sharpe: null }]);
    },
  );

  it('a worker whose schema a newer version has replaced starts no task', async () => {
    let asked = 0;
    const schemaFault = async (): Promise<ServiceError> => {
      asked += 1;
      return new ServiceError('storage_unavailable', 'a test', { reason: 'newer_schema' });
    };
    const runner = run({ ...service, storage: { ...service.storage, schemaFault } });
    const task_id = await start();
    await vi.waitFor(() => {
      runner.wake();
      expect(asked).toBeGreaterThan(2);
    });
    expect(await find(task_id)).toMatchObject({ status: 'queued', attempts: 0 });
  });

  it('a task that cannot succeed fails with the reason', async () => {
    run();
    // Between two daily bars.
    const task_id = await start({ from: '2000-01-03T01:00:00Z', to: '2000-01-03T02:00:00Z' });
    const { status, error } = await ended(task_id);
    expect(status).toBe('failed');
    expect(JSON.parse(error!)).toMatchObject({ code: 'invalid_data', remedy: expect.any(String) });
    expect((await runEvents(task_id)).at(-1)!.payload).toMatchObject({ status: 'failed' });
    await expect(getResult(service.storage.read, task_id)).rejects.toMatchObject({
      code: 'conflict',
      reason: 'no_result',
    });
  });

  it.runIf(isAtLength)(
    'a backtest whose strategy fails reports that, with the lines logged before, even if they cannot be stored',
    async () => {
      service = { ...service, customCode: { memoryMb: 256, timeoutMs: 5000 } };
      const { storage } = service;
      const files = { 'own.ts': strategyThat('', '', "log('made'); throw new Error('end');") };
      await createBot(service, 'operator', { document: ownDocument(), files });
      const failed = async (): Promise<Task> => {
        const { task_id } = await startBacktest(service, 'operator', 'own', {});
        for (const runner of runners) runner.wake();
        return ended(task_id);
      };
      const first = run();
      const stored = await failed();
      const logged = await text(await readFile(storage.read, stored.task_id, 'log.txt'));
      expect(logged).toBe('2000-01-01T00:00:00Z made\n');
      expect(log).toEqual([]);
      await first.stop();

      const write: Storage['write'] = (work, ...options) =>
        storage.write(
          (tx) => {
            const insert = tx.insertInto.bind(tx);
            vi.spyOn(tx, 'insertInto').mockImplementation((table) => {
              if (table === 'task_files') throw new Error('file not readable');
              return insert(table);
            });
            return work(tx);
          },
          ...options,
        );
      run({ ...service, storage: { ...storage, write } });
      const lost = await failed();
      expect(lost).toMatchObject({ status: 'failed', attempts: 1, error: stored.error });
      expect(await listFiles(storage.read, lost.task_id)).toEqual([]);
      expect(log.join('\n')).toMatch(
        `the log of the strategy of the failed task ${lost.task_id} cannot be stored\nError: file not readable`,
      );
    },
  );

  it('queued and running tasks can be canceled', async () => {
    const waiting = await start();
    expect(await cancelTask(service, 'operator', waiting)).toMatchObject({ status: 'canceled' });
    const running = await start();
    const runner = run();
    await vi.waitFor(async () => expect(await find(running)).toMatchObject({ status: 'running' }), {
      interval: 2,
    });
    expect(await cancelTask(service, 'operator', running)).toMatchObject({ status: 'running' });
    runner.wake();
    expect(await ended(running)).toMatchObject({ status: 'canceled' });
    for (const task_id of [waiting, running]) {
      const again = await cancelTask(service, 'operator', task_id);
      expect(again).toEqual(await find(task_id));
      expect((await runEvents(task_id)).at(-1)).toMatchObject({
        kind: 'run.ended',
        payload: { status: 'canceled' },
      });
    }
    const { items } = await listDeployments(service.storage.read, 'sma', { limit: 10 });
    expect(items.map(({ status }) => status)).toEqual(['halted', 'halted']);
  });

  it('the tasks of a stopping server return to the queue for the next server', async () => {
    const task_id = await start();
    const first = run();
    await vi.waitFor(async () => expect(await find(task_id)).toMatchObject({ status: 'running' }), {
      interval: 2,
    });
    await first.stop();
    expect(await find(task_id)).toMatchObject({
      status: 'queued',
      attempts: 0,
      started_at: null,
    });
    run(await open());
    expect(await ended(task_id)).toMatchObject({ status: 'success', attempts: 1 });
    expect((await runEvents(task_id)).map(({ kind: what }) => what)).toEqual([
      'run.queued',
      'run.started',
      'run.requeued',
      'run.started',
      'run.ended',
    ]);
  });

  /** Once the runner has looked at the tasks of all others, at least once. */
  const looked = async (): Promise<unknown> => start().then(ended);

  it('only tasks of silent workers are restarted', async () => {
    const [lost, kept] = [await start(), await start()];
    const { storage } = service;
    for (let i = 0; i < 2; i += 1) await claimAs(ELSEWHERE);
    const claims = await listRunningTasks(storage.read);
    const alive = claims.find((claim) => claim.task_id === kept)!;
    const runner = run();
    await looked();
    await storage.write((tx) => recordHeartbeat(tx, alive, now + 1, { done: 1, total: 2 }, true));
    advance(31_000);
    runner.wake();
    expect(await ended(lost)).toMatchObject({ status: 'success', attempts: 2 });
    expect(await find(kept)).toMatchObject({ status: 'running', attempts: 1, progress_done: 1 });
    expect((await runEvents(kept)).at(-1)).toMatchObject({
      kind: 'run.progress',
      payload: { done: 1, total: 2 },
    });
  });

  it.runIf(isAtLength).each([
    ['ahead', 3_600_000],
    ['behind', -3_600_000],
  ])(
    'tasks of a worker whose clock is an hour %s are reclaimed only after it has died',
    async (_, skew) => {
      const { storage } = service;
      const task_id = await start();
      now += skew;
      const claim = (await claimAs(ELSEWHERE))!;
      now -= skew;
      const runner = run();
      await looked();
      for (const beats of [1, 2]) {
        advance(20_000);
        await storage.write((tx) =>
          recordHeartbeat(tx, claim, now + skew + beats, undefined, false),
        );
        await looked();
        expect(await find(task_id)).toMatchObject({ status: 'running', attempts: 1 });
      }
      advance(31_000);
      runner.wake();
      expect(await ended(task_id)).toMatchObject({ status: 'success', attempts: 2 });
    },
  );

  it('a worker does not reclaim tasks of a live worker when its own clock is set ahead', async () => {
    const task_id = await start();
    await claimAs(ELSEWHERE);
    run();
    await looked();
    now += 86_400_000;
    await looked();
    expect(await find(task_id)).toMatchObject({ status: 'running', attempts: 1 });
  });
});

describe('a worker whose database does not answer', () => {
  useDatabase('sqlite');

  const unavailable = (): ServiceError => storageUnavailable(new Error('it hangs'));

  it.runIf(isAtLength)(
    'a worker that could not write heartbeats during an outage does not count as dead',
    async () => {
      const task_id = await start();
      await claimAs(ELSEWHERE);
      let isOut = false;
      const { storage } = service;
      const failing = {
        ...storage,
        get read() {
          if (isOut) throw unavailable();
          return storage.read;
        },
      };
      const runner = run({ ...service, storage: failing });
      await start().then(ended);
      isOut = true;
      advance(60_000);
      runner.wake();
      await vi.waitFor(() => expect(log.join()).toContain('the queue of tasks cannot be read'));
      isOut = false;
      // Another task is done only after the worker has looked for dead ones.
      await start().then(ended);
      expect(await find(task_id)).toMatchObject({ status: 'running', attempts: 1 });
      advance(31_000);
      expect(await ended(task_id)).toMatchObject({ status: 'success', attempts: 2 });
    },
  );

  it.runIf(isAtLength)('a worker releases at once a task that it claimed unknowingly', async () => {
    const { storage } = service;
    let isLost = false;
    const write: Storage['write'] = async (work, options) => {
      const done = await storage.write(work, options);
      if (isLost || !Array.isArray(done) || done.length === 0) return done;
      isLost = true;
      throw new OutcomeUnknown(new Error('the connection broke'));
    };
    const task_id = await start();
    run({ ...service, storage: { ...storage, write } });
    expect(await ended(task_id)).toMatchObject({ status: 'success', attempts: 1 });
    expect(
      (await runEvents(task_id)).map(({ kind, payload }) => [kind, payload['reason']]),
    ).toEqual([
      ['run.queued', undefined],
      ['run.started', undefined],
      ['run.requeued', 'claim_lost'],
      ['run.started', undefined],
      ['run.ended', undefined],
    ]);
  });
});

describe('paper sessions on one PostgreSQL', () => {
  useDatabase('postgres');

  const makeSessions = async (count: number): Promise<void> => {
    const document = tradingDocument('trader', 'sma_crossover', { fast: 2, slow: 3 });
    await createBot(service, 'operator', { document });
    for (let i = 0; i < count; i += 1) {
      await startPaper(service, 'operator', 'trader', { speed: 86_400 });
    }
  };
  const addWorker = async (paperSessions: number): Promise<TaskRunner> => {
    const options = {
      workers: 1,
      paperSessions,
      timeoutMs: 5000,
      log: createLog((line) => log.push(line), false),
    };
    const runner = startTaskRunner(await open(), options);
    runners.push(runner);
    return runner;
  };
  /** How many sessions each worker has, in ascending order, once none waits. */
  const counts = async (): Promise<number[]> => {
    let found: number[] = [];
    await vi.waitFor(
      async () => {
        const tasks = await service.storage.read
          .selectFrom('tasks')
          .select('worker_id')
          .where('kind', '=', 'paper')
          .execute();
        const held = tasks.flatMap(({ worker_id }) => worker_id ?? []);
        expect(held).toHaveLength(tasks.length);
        found = [...Map.groupBy(held, (who) => who).values()].map(({ length }) => length);
      },
      { timeout: 20_000, interval: 20 },
    );
    return found.toSorted((a, b) => a - b);
  };
  const announced = async (count: number): Promise<void> =>
    vi.waitFor(async () => {
      const rows = await service.storage.read.selectFrom('workers').selectAll().execute();
      expect(rows).toHaveLength(count);
    });

  it.runIf(isAtLength)(
    'paper sessions are spread over the workers, within the capacity of each',
    async () => {
      await Promise.all([addWorker(100), addWorker(2), addWorker(100)]);
      await announced(3);
      await makeSessions(12);
      const [small, ...others] = await counts();
      expect(small).toBe(2);
      // On a slow machine, one session may have waited until any worker could claim it.
      expect(others).toHaveLength(2);
      expect(Math.min(...others)).toBeGreaterThanOrEqual(3);
    },
  );

  it.runIf(isAtLength)(
    'a single worker gets all sessions, and the others get those of a stopped worker',
    async () => {
      const first = await addWorker(100);
      await makeSessions(6);
      expect(await counts()).toEqual([6]);
      await Promise.all([addWorker(100), addWorker(100)]);
      await announced(3);
      await first.stop();
      await announced(2);
      const halves = await counts();
      expect(halves).toHaveLength(2);
      expect(Math.min(...halves)).toBeGreaterThanOrEqual(2);
    },
  );

  it.runIf(isAtLength)(
    'sessions start soon although another worker does not take its share',
    async () => {
      const room = { paper: 100, production: 0 };
      await service.storage.write((tx) => announceWorker(tx, now, ELSEWHERE, room));
      const runner = await addWorker(100);
      await makeSessions(4);
      const isHalved = async () =>
        expect(await listRunningTasks(service.storage.read)).toHaveLength(2);
      await vi.waitFor(isHalved, { timeout: 20_000 });
      advance(6_000);
      runner.wake();
      expect(await counts()).toEqual([4]);
    },
  );
});

describe('tasks on one PostgreSQL', () => {
  useDatabase('postgres');

  it.runIf(isAtLength)('servers share tasks, and run each once', async () => {
    run();
    run(await open());
    const tasks = [await start(), await start()];
    for (const task_id of tasks) {
      expect(await ended(task_id)).toMatchObject({ status: 'success', attempts: 1 });
      expect(await runEvents(task_id)).toHaveLength(3);
    }
  });
});

it.each([
  [20, [100], 20],
  [20, [100, 100], 10],
  [21, [100, 100], 11],
  [20, [4, 100, 100], 8],
  [20, [4, 0, 100], 16],
  [20, [4, 5], Infinity],
  [0, [4, 5], 0],
])(
  'the fair share of %d sessions over workers with capacities %j is %d',
  (sessions, capacities, share) => {
    expect(fairShare(sessions, capacities)).toBe(share);
  },
);
