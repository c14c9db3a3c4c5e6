import { mkdtemp, rm, truncate, writeFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readNextPart } from '../../../src/events/archive/part.ts';
import { appendSessionEvents } from '../../../src/events/append.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import { stateAt } from '../../../src/events/snapshot.ts';
import { verifyEvents } from '../../../src/events/verify-events.ts';
import type { Archive } from '../../../src/fleet/archive/archive-bot.ts';
import { verifyBot } from '../../../src/fleet/archive/verify-archive.ts';
import { archiveEvents, restoreEvents } from '../../../src/server/event-archives.ts';
import { queueTask } from '../../../src/fleet/tasks/tasks.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { SCRATCH } from '../../scratch.ts';
import { mainlyOn, newTables, type TestDatabase } from '../../storage/databases.ts';
import { allEvents, countRows, newBot, recordSession, startOf } from './recorded.ts';
import { isAtLength } from '../../length.ts';

const DAY = 24 * 3600_000;

describe.each(mainlyOn('sqlite'))('archives of events on %s', (kind) => {
  const isMain = kind === 'sqlite';
  let database: TestDatabase;
  let storage: Storage;
  let archive: Archive;

  beforeAll(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    const directory = await mkdtemp(join(SCRATCH, 'archive-'));
    archive = { storage, directory, clock: () => startOf('2026-06') };
  });

  afterAll(async () => {
    await storage.close();
    await database.remove();
    await rm(archive.directory, { recursive: true });
  });

  const archiveBefore = async (bot: string, month: string): Promise<string[]> => {
    const files: string[] = [];
    await archiveEvents(archive, bot, startOf(month), ({ file }) => files.push(file));
    return files;
  };
  const restoreFrom = (bot: string, month?: string): Promise<void> =>
    restoreEvents(archive, bot, month, () => {});
  /** Two sessions in turn from January to March, one of which trades beyond the end of January. */
  const recordedBot = async (bot: string): Promise<void> => {
    await newBot(storage, bot, '2026-01');
    await recordSession(storage, bot, { run_id: `${bot} a`, at: startOf('2026-01'), bars: 90 });
    const at = startOf('2026-02') - 30 * 60_000;
    await recordSession(storage, bot, { run_id: `${bot} b`, at, bars: 120 });
    await recordSession(storage, bot, { run_id: `${bot} c`, at: startOf('2026-03'), bars: 90 });
  };

  test('hold every event unchanged, and put it back', async () => {
    await recordedBot('one');
    const before = await allEvents(storage, 'one');
    const { state_hash } = await stateAt(storage.read, 'one', 'head');
    const files = await archiveBefore('one', '2026-03');
    expect(files.map((file) => file.split('/')[1])).toEqual(['2026-01', '2026-02']);
    expect(await archiveBefore('one', '2026-03')).toEqual([]);
    const { archived_seq } = await verifyBot(archive, 'one');
    expect(await allEvents(storage, 'one', archived_seq)).toEqual(before.slice(archived_seq));
    expect((await stateAt(storage.read, 'one', 'head')).state_hash).toBe(state_hash);
    expect(await verifyEvents(storage.read, 'one')).toMatchObject({ state_hash, archived_seq });

    await restoreFrom('one', '2026-02');
    const march = before.findIndex(({ recorded_at }) => recorded_at >= startOf('2026-02'));
    expect(await allEvents(storage, 'one', march)).toEqual(before.slice(march));
    await restoreFrom('one');
    expect(await allEvents(storage, 'one')).toEqual(before);
    expect(await archiveBefore('one', '2026-03')).toEqual(files);
    expect(await verifyBot(archive, 'one')).toMatchObject({ fault: null, seq: before.length });
  });

  test('let sessions continue whose states refer to archived events', async () => {
    await newBot(storage, 'two', '2026-01');
    const at = startOf('2026-02') - 30 * 60_000;
    await recordSession(storage, 'two', { run_id: 'long', at, bars: 60, ends: false });
    const before = await allEvents(storage, 'two');
    expect(await archiveBefore('two', '2026-02')).toHaveLength(1);
    const { archived_seq } = await verifyBot(archive, 'two');
    expect(archived_seq).toBeGreaterThan(0);
    const state = before.findLast((row) => row.kind === 'session.state')!;
    const later = { version: 1, run_id: 'long', occurred_at: startOf('2026-02') + DAY };
    const bars = { time: '2026-02-02T00:00:00.000Z', bars: { SPX: [1, 2, 1, 2, 3] } };
    await storage.write((tx) =>
      appendSessionEvents(tx, 'two', startOf('2026-02') + DAY, [
        { ...later, kind: 'data.bars', payload: bars },
        { ...later, kind: 'session.state', payload: state.payload },
      ]),
    );
    const after = await allEvents(storage, 'two', archived_seq);
    expect(after.slice(0, -2)).toEqual(before.slice(archived_seq));
    expect(after.at(-1)).toMatchObject({ payload: state.payload });
    expect(await verifyBot(archive, 'two')).toMatchObject({ fault: null });
    await restoreFrom('two');
    expect(await allEvents(storage, 'two')).toEqual([...before, ...after.slice(-2)]);
  });

  test.runIf(isAtLength)(
    'leave the start of an open task in the database, so that its events can be read',
    async () => {
      await newBot(storage, 'three', '2026-01');
      const [a, b] = [startOf('2026-01'), startOf('2026-01') + DAY];
      await recordSession(storage, 'three', { run_id: 'done', at: a, bars: 30 });
      const task = { kind: 'backtest', bot_id: 'three', version: 1, input: {} } as const;
      const version = { bot_id: 'three', version: 1, hash: '', document: '{}', bundle_hash: null };
      const { seq, task_id } = await storage.write(async (tx) => {
        const made = { created_at: b, created_by: 'operator' };
        await tx
          .insertInto('bot_versions')
          .values({ ...version, ...made })
          .execute();
        return queueTask(tx, b, 'operator', task);
      });
      await recordSession(storage, 'three', { run_id: 'last', at: startOf('2026-03'), bars: 2 });
      await archiveBefore('three', '2026-03');
      expect(await verifyBot(archive, 'three')).toMatchObject({ archived_seq: seq });
      const own = { after_seq: 0, limit: 1, run_id: task_id };
      expect((await readEvents(storage.read, 'three', own)).events[0]).toMatchObject({ seq });
    },
  );

  test.runIf(isAtLength)(
    'never separate bars from the state after them, which share a row',
    async () => {
      await newBot(storage, 'pairs', '2026-01');
      const session = { run_id: 'pairs', at: startOf('2026-01'), bars: 30, ends: false };
      await recordSession(storage, 'pairs', session);
      const before = await allEvents(storage, 'pairs');
      expect(before.at(-1)).toMatchObject({ kind: 'session.state' });
      await archiveBefore('pairs', '2026-04');
      const { archived_seq, fault } = await verifyBot(archive, 'pairs');
      expect({ archived_seq, fault }).toEqual({ archived_seq: before.length - 2, fault: null });
      for (const most of [20, 21, 22, 23]) {
        await restoreFrom('pairs');
        const next = await readNextPart(storage.read, 'pairs', startOf('2026-04'), most);
        expect(next!.rows.at(-1)!.kind).not.toBe('data.bars');
        await archiveBefore('pairs', '2026-04');
      }
      expect(await allEvents(storage, 'pairs', archived_seq)).toEqual(before.slice(archived_seq));
    },
  );

  test('make reads of archived events fail with the file that holds them', async () => {
    await recordedBot('four');
    await archiveBefore('four', '2026-03');
    const { archived_seq } = await verifyBot(archive, 'four');
    const fails = { code: 'archived', message: expect.stringMatching(/2026-01.*\.parquet/) };
    const { read } = storage;
    const range = { after_seq: 0, limit: 10 };
    await expect(readEvents(read, 'four', range)).rejects.toMatchObject(fails);
    await expect(
      readEvents(read, 'four', { ...range, kinds: ['order.filled'] }),
    ).rejects.toMatchObject(fails);
    await expect(stateAt(read, 'four', { seq: 3 })).rejects.toMatchObject(fails);
    await expect(verifyEvents(read, 'four', { seq: 3 })).rejects.toMatchObject(fails);
    const at = startOf('2026-01') + 60_000;
    await expect(stateAt(read, 'four', { at })).rejects.toMatchObject(fails);
    await expect(readEvents(read, 'four', { ...range, run_id: 'four a' })).rejects.toMatchObject({
      code: 'archived',
    });
    expect(await stateAt(read, 'four', { seq: archived_seq })).toMatchObject({ seq: archived_seq });
    const month = { at: startOf('2026-03') - 1 };
    expect(await stateAt(read, 'four', month)).toMatchObject({ seq: archived_seq });
    const own = { after_seq: 0, limit: 1000, run_id: 'four c' };
    expect((await readEvents(read, 'four', own)).events[0]).toMatchObject({ kind: 'run.queued' });
    const last = await readEvents(read, 'four', { ...range, last: true, limit: 1000 });
    expect(last).toMatchObject({ archived_seq });
    expect(last.events[0]!.seq).toBe(archived_seq + 1);
  });

  test.runIf(isMain)('are found to be altered, incomplete or missing', async () => {
    await recordedBot('five');
    const [, file] = await archiveBefore('five', '2026-03');
    const path = join(archive.directory, file!);
    const content = await readFile(path);
    const fault = async () => (await verifyBot(archive, 'five')).fault;
    await writeFile(path, content.with(100, content[100]! ^ 1));
    expect(await fault()).toEqual({ file, seq: null, fault: 'file_altered' });
    await expect(restoreFrom('five')).rejects.toMatchObject({ code: 'events_tampered' });
    await truncate(path, 100);
    expect(await fault()).toMatchObject({ file, fault: 'file_altered' });
    await rm(path);
    expect(await fault()).toMatchObject({ file, fault: 'file_missing' });
    await writeFile(path, content);
    expect(await fault()).toBeNull();
  });

  test.runIf(isAtLength && isMain)(
    'leave no rows behind but those that hot events need',
    async () => {
      const before = await countRows(storage);
      await recordedBot('six');
      await archiveBefore('six', '2026-04');
      const rows = await countRows(storage);
      expect(rows['packed_bars']).toBe(before['packed_bars']);
      expect(rows['stored_bars']).toBe(before['stored_bars']);
      // The head of the log stays.
      expect(rows['bot_events']! - before['bot_events']!).toBe(1);
    },
  );
});
