import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { Summary } from '../../../src/backtest/summary.ts';
import { readNextArchived } from '../../../src/events/archive/archived-events.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import type { Archive } from '../../../src/fleet/archive/archive-bot.ts';
import { verifyBot } from '../../../src/fleet/archive/verify-archive.ts';
import { compareWithBacktest, replayRun } from '../../../src/fleet/parity/replay.ts';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import { claimTasks } from '../../../src/fleet/tasks/lifecycle.ts';
import { startPaper, type PaperRequest } from '../../../src/fleet/tasks/paper.ts';
import { recordedInputs } from '../../../src/fleet/tasks/read-run-events.ts';
import { appendSession, readSession } from '../../../src/fleet/tasks/session-record.ts';
import { readSessionChart } from '../../../src/fleet/tasks/session-chart.ts';
import { startTaskRunner, type TaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { archiveWaits } from '../../../src/fleet/tasks/task-notices.ts';
import { getResult, getTask, type TaskService } from '../../../src/fleet/tasks/tasks.ts';
import { barsFromRows } from '../../../src/market/bars.ts';
import { archiveEvents, restoreEvents } from '../../../src/server/event-archives.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { barsEvent, inputEvent } from '../../../src/trading/session-events.ts';
import { isAtLength } from '../../length.ts';
import { SCRATCH, TEMPORARY } from '../../scratch.ts';
import { mainlyOn, newTables, type TestDatabase } from '../../storage/databases.ts';
import { fillCatalogue, tradingDocument } from '../tasks/market.ts';

/** Days per second of a session that is interrupted. */
const PACED = 86_400 * 100;

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(TEMPORARY, 'service-local-open-session-'));
  await fillCatalogue(catalogueDir, 1);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

describe.each(mainlyOn('sqlite'))(
  'a session whose events are archived while it is open, on %s',
  (kind) => {
    let database: TestDatabase;
    let storage: Storage;
    let service: TaskService;
    let archive: Archive;
    let runners: TaskRunner[];
    let log: string[];

    beforeEach(async () => {
      database = await newTables(kind);
      storage = await openStorage(database.location);
      const directory = await mkdtemp(join(SCRATCH, 'open-session-'));
      archive = { storage, directory, clock: Date.now };
      service = { storage, clock: Date.now, catalogueDir, archiveDir: directory };
      runners = [];
      log = [];
    });
    afterEach(async () => {
      for (const runner of runners) await runner.stop();
      await storage.close();
      await database.remove();
      await rm(archive.directory, { recursive: true });
    });

    const run = (): TaskRunner => {
      const runner = startTaskRunner(service, {
        workers: 1,
        paperSessions: 10,
        timeoutMs: 5000,
        log: createLog((line) => log.push(line), false),
      });
      runners.push(runner);
      return runner;
    };
    const start = async (
      slug: string,
      request: PaperRequest,
    ): Promise<{ readonly bot_id: string; readonly task_id: string }> => {
      const document = tradingDocument(slug, 'sma_crossover', { fast: 3, slow: 8 });
      const { bot_id } = await createBot(service, 'operator', { document });
      const { task_id } = await startPaper(service, 'operator', bot_id, request);
      return { bot_id, task_id };
    };
    const waitFor = (task_id: string, steps: number): Promise<void> =>
      vi.waitFor(
        async () => {
          const { progress_done } = await getTask(storage.read, task_id);
          expect(progress_done).toBeGreaterThanOrEqual(steps);
        },
        { timeout: 20_000, interval: 20 },
      );
    const resultOf = async (task_id: string): Promise<Summary> => {
      await vi.waitFor(
        async () =>
          expect(await getTask(storage.read, task_id)).toMatchObject({ status: 'success' }),
        { timeout: 20_000, interval: 20 },
      );
      return JSON.parse(await getResult(storage.read, task_id)) as Summary;
    };
    /** Archives all events but the last ones, although they are of the current month. */
    const archiveAll = (bot: string): Promise<void> =>
      archiveEvents(archive, bot, Date.now() + 1, () => {});

    test.runIf(isAtLength)(
      'resumes from the files, and ends as without an interruption',
      async () => {
        const whole = await start('whole', { speed: 'max' });
        const { bot_id, task_id } = await start('archived', { speed: PACED });
        const archived: number[] = [];
        for (const steps of [40, 90, 140]) {
          const runner = run();
          await waitFor(task_id, steps);
          await archiveAll(bot_id);
          await runner.stop();
          await archiveAll(bot_id);
          const { archived_seq, fault } = await verifyBot(archive, bot_id);
          expect(fault).toBeNull();
          archived.push(archived_seq);
        }
        expect(archived[0]).toBeGreaterThan(60);
        expect(archived.at(-1)).toBeGreaterThan(archived[0]!);
        expect(await getTask(storage.read, task_id)).toMatchObject({ status: 'queued' });
        run();
        const [expected, result] = [await resultOf(whole.task_id), await resultOf(task_id)];
        expect(result.hashes).toEqual(expected.hashes);
        expect(result.trades).toEqual(expected.trades);
        expect(await verifyBot(archive, bot_id)).toMatchObject({ fault: null });

        await expect(replayRun(service, bot_id, task_id)).rejects.toMatchObject({
          code: 'archived',
          message: expect.stringContaining('.parquet'),
        });
        const named = { code: 'archived', message: expect.stringMatching(/month .*\.parquet/) };
        const range = { after_seq: 0, limit: 10, run_id: task_id };
        await restoreEvents(archive, bot_id, undefined, () => {});
        expect(await replayRun(service, bot_id, task_id)).toMatchObject({
          bars: 300,
          matches: true,
        });
        await archiveAll(bot_id);
        await expect(compareWithBacktest(service, bot_id, {})).rejects.toMatchObject(named);
        await expect(readEvents(storage.read, bot_id, range)).rejects.toMatchObject({
          code: 'archived',
        });
      },
    );

    test.runIf(isAtLength)(
      'waits while its files are missing, and resumes when they are back',
      async () => {
        const { bot_id, task_id } = await start('waits', { speed: PACED });
        const runner = run();
        await waitFor(task_id, 30);
        await runner.stop();
        await archiveAll(bot_id);
        const away = `${archive.directory}-away`;
        await rename(archive.directory, away);
        run();
        await vi.waitFor(() => expect(log.join('\n')).toMatch(/\.parquet.* is missing/), {
          timeout: 10_000,
        });
        expect(await getTask(storage.read, task_id)).toMatchObject({
          status: 'running',
          error: null,
        });
        expect([...archiveWaits]).toEqual([task_id]);
        await rename(away, archive.directory);
        await resultOf(task_id);
        expect(archiveWaits.size).toBe(0);
        expect(log.filter((line) => line.includes('is missing'))).toHaveLength(1);
      },
    );

    test.runIf(isAtLength)(
      'fails when it restarts without its market data, and loses no event',
      async () => {
        const { bot_id, task_id } = await start('no-data', { speed: PACED });
        const runner = run();
        await waitFor(task_id, 30);
        await runner.stop();
        await rename(catalogueDir, `${catalogueDir}-away`);
        run();
        await vi.waitFor(
          async () =>
            expect(await getTask(storage.read, task_id)).toMatchObject({ status: 'failed' }),
          { timeout: 20_000 },
        );
        const { error } = await getTask(storage.read, task_id);
        expect(error).toContain('the session cannot resume: the catalogue');
        expect(error).toContain('--catalogue-dir');
        await rename(`${catalogueDir}-away`, catalogueDir);
        const { first_seq } = await readSession(storage.read, task_id);
        const bars = await readEvents(storage.read, bot_id, {
          after_seq: first_seq,
          kinds: ['data.bars'],
          limit: 1000,
        });
        expect(bars.events.length).toBeGreaterThanOrEqual(30);
        expect(await verifyBot(archive, bot_id)).toMatchObject({ fault: null });
      },
    );

    test.runIf(isAtLength)('is left to workers that can read archived inputs', async () => {
      const { bot_id, task_id } = await start('level', { speed: PACED });
      const runner = run();
      await waitFor(task_id, 30);
      await runner.stop();
      const claim = (level: number) =>
        storage.write((tx) => claimTasks(tx, Date.now(), 'worker', 'paper', 10, level));
      await archiveAll(bot_id);
      expect(await claim(1)).toEqual([]);
      expect(await claim(2)).toMatchObject([{ task_id }]);
    });

    test.runIf(isAtLength)('waits for a file that cannot be read, and then reads it', async () => {
      const { bot_id, task_id } = await start('unreadable', { speed: PACED });
      const runner = run();
      await waitFor(task_id, 30);
      await runner.stop();
      await archiveAll(bot_id);
      const { first_seq } = await readSession(storage.read, task_id);
      const session = { bot_id, task_id, after_seq: first_seq - 1 };
      const read = recordedInputs(storage.read, archive.directory, session);
      const { file } = (await readNextArchived(storage.read, bot_id, session.after_seq))!;
      const path = join(archive.directory, file);
      await rename(path, `${path}-away`);
      await mkdir(path);
      await expect(read()).rejects.toMatchObject({
        code: 'storage_unavailable',
        reason: 'archive_unreadable',
        message: expect.stringContaining('cannot be read: EISDIR') as string,
      });
      await rm(path, { recursive: true });
      await rename(`${path}-away`, path);
      expect((await read()).length).toBeGreaterThanOrEqual(30);
    });

    const timeOf = (day: number): number => Date.UTC(2000, 0, 1 + day);
    const STATE = { status: 'running', time: null, seq: 0, cash: 1, equity: 1 };
    /** Records daily bars of SPX in a session, each of which closes at the number of its day. */
    const recordDays = async (
      task_id: string,
      [first, last]: readonly [number, number],
      recorded: 'data.warm_up' | 'data.bars',
    ): Promise<void> => {
      const task = await getTask(storage.read, task_id);
      const days = Array.from({ length: last - first + 1 }, (_, index) => first + index);
      const events = days.map((day) => {
        const candle = { open: day, high: day, low: day, close: day, volume: 1 };
        const time = timeOf(day);
        if (recorded === 'data.bars') return barsEvent({ time, bars: { SPX: candle } });
        const bars = { SPX: barsFromRows([[time, day, day, day, day, 1]]) };
        return inputEvent({ kind: recorded, bars, continues: day > 0 }, Date.now());
      });
      const payload = { ...STATE, positions: {}, working: [] };
      const state = { kind: 'session.state', occurred_at: Date.now(), payload };
      await storage.write((tx) =>
        appendSession(tx, { ...task, deployment_id: '' }, Date.now(), [...events, state]),
      );
    };

    test('has a chart of the steps in the database after earlier ones were archived', async () => {
      const { bot_id, task_id } = await start('chart', { speed: 1 });
      await recordDays(task_id, [0, 4], 'data.warm_up');
      await recordDays(task_id, [5, 24], 'data.bars');
      await archiveAll(bot_id);
      await recordDays(task_id, [25, 34], 'data.bars');
      const { candles, lines } = await readSessionChart(service, bot_id, {});
      // The last step stays in the database.
      expect(candles.close).toEqual([24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34]);
      const unknown = (count: number) => Array.from({ length: count }, () => null);
      expect(lines).toEqual([
        [...unknown(2), 25, 26, 27, 28, 29, 30, 31, 32, 33],
        [...unknown(7), 27.5, 28.5, 29.5, 30.5],
      ]);
    });

    test.runIf(isAtLength)(
      'has a chart whose indicators continue more than a thousand recorded parts of earlier bars',
      async () => {
        const { bot_id, task_id } = await start('parts', { speed: 1 });
        await recordDays(task_id, [0, 1009], 'data.warm_up');
        await recordDays(task_id, [1010, 1011], 'data.bars');
        const { candles, lines } = await readSessionChart(service, bot_id, {});
        expect(candles.close).toEqual([1010, 1011]);
        expect(lines).toEqual([
          [1009, 1010],
          [1006.5, 1007.5],
        ]);
      },
    );

    test('has all inputs in order, whenever they are archived or restored', async () => {
      const { bot_id, task_id } = await start('pages', { speed: 1 });
      const { first_seq } = await readSession(storage.read, task_id);
      const task = await getTask(storage.read, task_id);
      const BARS = 1300;
      const times: string[] = [];
      for (let day = 0; day < BARS; day += 1) {
        times.push(new Date(Date.UTC(2000, 0, 1 + day)).toISOString());
      }
      await storage.write((tx) =>
        appendSession(tx, { ...task, deployment_id: '' }, Date.now(), [
          ...times.map((time) => ({
            kind: 'data.bars' as const,
            occurred_at: Date.parse(time),
            payload: { time, bars: { SPX: [1, 2, 1, 2, 3] } },
          })),
          { kind: 'control.latch_lifted', occurred_at: Date.now(), payload: { latches: 1 } },
          { kind: 'data.gap', occurred_at: Date.now(), payload: {} },
        ]),
      );
      const archiveTo = (): Promise<void> => archiveAll(bot_id);
      const restore = (): Promise<void> => restoreEvents(archive, bot_id, undefined, () => {});
      const session = { bot_id, task_id, after_seq: first_seq - 1 };
      const readAll = async (between: readonly (() => Promise<void>)[]): Promise<string[]> => {
        const read = recordedInputs(storage.read, archive.directory, session);
        const found: string[] = [];
        for (let page = 0; ; page += 1) {
          const inputs = await read();
          if (inputs.length === 0) return found;
          found.push(...inputs.map(({ payload }) => payload));
          await between[page]?.();
        }
      };
      const expected = await readAll([]);
      expect(expected).toHaveLength(BARS + 1);
      const idle = async (): Promise<void> => {};
      for (const between of [[archiveTo], [restore], [idle, archiveTo], [restore, archiveTo]]) {
        expect(await readAll(between)).toEqual(expected);
      }
    });
  },
);
