import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { recordHalt } from '../../../src/fleet/halts/halt.ts';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import type { Summary } from '../../../src/backtest/summary.ts';
import { BUILT_IN_STRATEGIES } from '../../../src/engine/strategies/built-in.ts';
import { ENGINE_VERSION } from '../../../src/engine/version.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import { stateAt } from '../../../src/events/snapshot.ts';
import { verifyEvents } from '../../../src/events/verify-events.ts';
import { unpackColumns } from '../../../src/base/packed-columns.ts';
import { createLog } from '../../../src/base/log.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { doBacktest } from '../../../src/fleet/tasks/backtest-work.ts';
import { listFiles, readFile } from '../../../src/fleet/tasks/task-files.ts';
import { startPaper, stopPaper, type PaperRequest } from '../../../src/fleet/tasks/paper.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { getResult, getTask, type Task, type TaskService } from '../../../src/fleet/tasks/tasks.ts';
import { newTables, type TestDatabase } from '../../storage/databases.ts';
import { isAtLength } from '../../length.ts';
import { fillCatalogue, tradingDocument } from './market.ts';

/** Parameters with which each trades in 300 days. */
const STRATEGIES: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  buy_and_hold: {},
  sma_crossover: { fast: 3, slow: 8 },
  rsi_reversion: { period: 3, lower: 40, upper: 60 },
  donchian_breakout: { entry: 6, exit: 3 },
  momentum_rotation: { lookback: 3, hold: 2, top: 2 },
  pairs_reversion: { lookback: 6, entry: 1, exit: 0.3 },
};

/** Strategies whose paper sessions are compared with backtests; none in `npm test`. */
const TRIED = isAtLength ? Object.keys(STRATEGIES) : [];

let catalogueDir: string;
/** Summaries by strategy. */
const backtests = new Map<string, Summary>();
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-paper-test-'));
  await fillCatalogue(catalogueDir, isAtLength ? 9000 : 1);
  for (const name of TRIED) backtests.set(name, await backtestOf(documentOf(name)));
});
afterAll(() => rm(catalogueDir, { recursive: true }));

let database: TestDatabase;
let storage: Storage;
let service: TaskService;
let runners: TaskRunner[];
let log: string[];

function useDatabase(kind: Storage['kind']): void {
  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    service = { storage, clock: Date.now, catalogueDir };
    runners = [];
    log = [];
  });
  afterEach(async () => {
    for (const runner of runners) await runner.stop();
    await storage.close();
    await database.remove();
  });
}

function run(): TaskRunner {
  const runner = startTaskRunner(service, {
    workers: 1,
    paperSessions: 100,
    timeoutMs: 5000,
    log: createLog((line) => log.push(line), false),
  });
  runners.push(runner);
  return runner;
}

function documentOf(name: string): ReturnType<typeof tradingDocument> {
  return tradingDocument(name.replaceAll('_', '-'), name, STRATEGIES[name]!);
}

/** Returns the summary that a backtest thread would return. */
async function backtestOf(document: ReturnType<typeof tradingDocument>): Promise<Summary> {
  const work = {
    runId: 'backtest',
    document,
    changes: {},
    catalogueDir,
    timeoutMs: 5000,
    directory: join(catalogueDir, 'run', randomUUID()),
  };
  const ports = {
    onProgress() {},
    count: async () => ({
      earlier: { count: 0, sharpe_count: 0, sharpe_mean: null, sharpe_variance: null },
    }),
    onFailedFiles() {},
    onLostFiles() {},
  };
  const { summary } = await doBacktest(work, ports, new AbortController().signal);
  // Only backtests count as trials.
  const { deflated_sharpe: _, lock, ...rest } = summary;
  const { 'deflated_sharpe.probability': __, ...reasons } = summary.undefined;
  return { ...rest, lock: { ...lock, trials: undefined }, undefined: reasons };
}

async function addBot(name: string): Promise<string> {
  const document = documentOf(name);
  const { bot_id } = await createBot(service, 'operator', { document });
  return bot_id;
}

const start = async (bot: string, request: PaperRequest = {}): Promise<string> =>
  (await startPaper(service, 'operator', bot, request)).task_id;

const find = (task_id: string): Promise<Task> => getTask(storage.read, task_id);

async function ended(task_id: string): Promise<Task> {
  await vi.waitFor(async () => expect(await find(task_id)).not.toMatchObject({ ended_at: null }), {
    timeout: 20_000,
    interval: 50,
  });
  return find(task_id);
}

async function recorded(task_id: string, steps: number): Promise<void> {
  await vi.waitFor(
    async () => expect((await find(task_id)).progress_done).toBeGreaterThanOrEqual(steps),
    { timeout: 20_000, interval: 40 },
  );
}

async function resultOf(task_id: string): Promise<Summary> {
  expect(await ended(task_id)).toMatchObject({ status: 'success', error: null });
  return JSON.parse(await getResult(storage.read, task_id)) as Summary;
}

async function runEvents(bot_id: string, task_id: string) {
  const { events } = await readEvents(storage.read, bot_id, { after_seq: 0, limit: 5000 });
  return events.filter(({ run_id }) => run_id === task_id);
}

describe('paper sessions', () => {
  useDatabase('sqlite');

  it.runIf(isAtLength)(
    'a paper session gives the same result as a backtest of the same bars, for built-in strategies',
    async () => {
      // Tests of models cover the strategies that read them.
      const alone = [...BUILT_IN_STRATEGIES.values()].filter(
        ({ signals }) => signals === undefined,
      );
      expect(Object.keys(STRATEGIES).toSorted()).toEqual(alone.map(({ name }) => name).toSorted());
      const papers = [];
      for (const name of TRIED) {
        const bot_id = await addBot(name);
        papers.push({ name, bot_id, paper: await start(bot_id, { speed: 'max' }) });
      }
      run();
      for (const { name, bot_id, paper } of papers) {
        const traded = await resultOf(paper);
        expect(traded.orders.filled).toBeGreaterThan(0);
        const { run_id: _paper, engine: _ofPaper, ...ofSession } = traded;
        const { run_id: _backtest, engine: _ofBacktest, ...ofBacktest } = backtests.get(name)!;
        expect(ofSession).toEqual(ofBacktest);
        const lines = (await runEvents(bot_id, paper))
          .filter(({ kind: what }) => /^(order|account)\./.test(what))
          .map(({ payload }) => `${JSON.stringify(payload)}\n`);
        expect(await text(await readFile(storage.read, paper, 'events.ndjson'))).toBe(
          lines.join(''),
        );
        expect(await listFiles(storage.read, paper)).toHaveLength(7);
        expect(await verifyEvents(storage.read, bot_id)).toMatchObject({
          fault: undefined,
          state: { sessions: {} },
        });
      }
      expect(log).toEqual([]);
    },
  );
});

describe('a paper session on PostgreSQL', () => {
  // On SQLite, servers are killed in the tests of the command line.
  useDatabase('postgres');

  it.runIf(isAtLength)(
    'a paper session resumes from its last recorded batch in any worker',
    async () => {
      const bot_id = await addBot('sma_crossover');
      // Three seconds, in which a server stops, and a thread of the next one ends.
      const task_id = await start(bot_id, { speed: 8_640_000 });
      const first = run();
      await recorded(task_id, 20);
      await first.stop();
      expect(await find(task_id)).toMatchObject({ status: 'queued', attempts: 0 });
      const { state } = await stateAt(storage.read, bot_id, 'head');
      expect(state.sessions[task_id]).toMatchObject({ status: 'running', version: 1 });
      const starting = once(process, 'worker') as Promise<[Worker]>;
      run();
      const [thread] = await starting;
      await recorded(task_id, 60);
      await thread.terminate();
      expect((await resultOf(task_id)).hashes).toEqual(backtests.get('sma_crossover')!.hashes);
      expect(await find(task_id)).toMatchObject({ attempts: 2 });
      const told = await runEvents(bot_id, task_id);
      expect(told.filter((event) => event.kind === 'data.bars')).toHaveLength(300);
      const requeued = told.filter((event) => event.kind === 'run.requeued');
      expect(requeued.map(({ payload }) => payload)).toMatchObject([
        { reason: 'server_stopped' },
        { reason: 'worker_died' },
      ]);
      const started = told.find((event) => event.kind === 'run.started')!;
      expect(started.payload).toMatchObject({ attempt: 1, engine: ENGINE_VERSION });
      expect(log.join('')).toMatch(/its thread ended/);
      expect(await verifyEvents(storage.read, bot_id)).toMatchObject({ fault: undefined });
    },
  );
});

describe('a paper session', () => {
  useDatabase('sqlite');

  it('a paper session is canceled when it is stopped before its first bars', async () => {
    const task_id = await start(await addBot('sma_crossover'));
    expect(await stopPaper(service, 'operator', task_id)).toMatchObject({ status: 'canceled' });
  });

  it.runIf(isAtLength)(
    'a paper session records all bars before its window, and trades like a backtest after its thread was killed',
    async () => {
      const document = documentOf('sma_crossover');
      const data = { source: 'catalog://LONG', timeframe: '1m', from: '2000-01-07T04:00:00Z' };
      const universe = { symbols: ['LONG'], currency: 'USD' };
      const long = { ...document, spec: { ...(document['spec'] as object), universe, data } };
      const { bot_id } = await createBot(service, 'operator', { document: long });
      const task_id = await start(bot_id, { speed: 6000 });
      const starting = once(process, 'worker') as Promise<[Worker]>;
      run();
      const [thread] = await starting;
      await recorded(task_id, 10);
      await thread.terminate();
      expect((await resultOf(task_id)).hashes).toEqual((await backtestOf(long)).hashes);
      const events = await runEvents(bot_id, task_id);
      expect(events.filter(({ kind }) => kind === 'data.bars')).toHaveLength(120);
      const columns = events.flatMap(({ kind, payload }) =>
        kind === 'data.warm_up' ? [(payload as { columns: Record<string, string> }).columns] : [],
      );
      expect(columns.map(({ LONG }) => unpackColumns(LONG!, 6, 4000)[0]!.length)).toEqual([
        4000, 4000, 880,
      ]);
      expect(events.filter(({ kind }) => kind === 'run.requeued')).toHaveLength(1);
    },
  );

  it.runIf(isAtLength)(
    'a paper session ends although the server that recorded its halt did not end it',
    async () => {
      let ahead = 0;
      service = { ...service, clock: () => Date.now() + ahead };
      const bot_id = await addBot('sma_crossover');
      const task_id = await start(bot_id, { speed: 8_640_000 });
      run();
      await recorded(task_id, 1);
      await storage.write((tx) => recordHalt(tx, Date.now(), 'operator', bot_id, 'a test'));
      await vi.waitFor(
        async () => {
          ahead += 60_000;
          expect(await find(task_id)).toMatchObject({ status: 'canceled' });
        },
        { timeout: 20_000, interval: 100 },
      );
      expect((await runEvents(bot_id, task_id)).at(-1)).toMatchObject({ kind: 'run.ended' });
    },
  );

  it('a paper session is rejected for a bot without risk limits and for a research bot', async () => {
    const document = tradingDocument('bare', 'buy_and_hold', {});
    const { risk, ...spec } = document['spec'] as { risk: Record<string, unknown> };
    await createBot(service, 'operator', { document: { ...document, spec } });
    await expect(start('bare')).rejects.toMatchObject({
      code: 'invalid_spec',
      problems: [{ code: 'missing_field', pointer: '/spec/risk' }],
    });
    const { max_order_qty: _none, ...rest } = risk;
    const partial = tradingDocument('partial', 'buy_and_hold', {});
    const some = { ...partial, spec: { ...(partial['spec'] as object), risk: rest } };
    await createBot(service, 'operator', { document: some });
    await expect(start('partial')).rejects.toMatchObject({
      problems: [{ code: 'missing_field', pointer: '/spec/risk/max_order_qty' }],
    });
    const study = tradingDocument('study', 'buy_and_hold', {});
    const research = { ...study, spec: { ...(study['spec'] as object), kind: 'research' } };
    await createBot(service, 'operator', { document: research });
    await expect(start('study')).rejects.toMatchObject({ problems: [{ pointer: '/spec/kind' }] });
  });
});
