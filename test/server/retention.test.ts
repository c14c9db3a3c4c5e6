import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../src/base/durations.ts';
import { queueTask } from '../../src/fleet/tasks/tasks.ts';
import { RETENTIONS } from '../../src/server/retention.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { addBot, CREATED } from '../events/bots.ts';
import { appendEvents } from '../../src/events/append.ts';
import { newSqliteTables, type TestDatabase } from '../storage/databases.ts';

const GUIDE = join(import.meta.dirname, '../../docs/how-to/retention.md');
const NOW = Date.parse('2026-06-01T00:00:00Z');

let database: TestDatabase;
let storage: Storage;

beforeAll(async () => {
  database = await newSqliteTables();
  storage = await openStorage(database.location);
});
afterAll(async () => {
  await storage.close();
  await database.remove();
});

test('the guide states the life of all rows that the server deletes', async () => {
  const guide = await readFile(GUIDE, 'utf8');
  for (const { name } of RETENTIONS) expect(guide).toMatch(new RegExp(`^\\| ${name} +\\|`, 'm'));
});

test('files of tasks are deleted after their days, except those of tests and of open tasks', async () => {
  await storage.write(async (tx) => {
    await addBot(tx, 'bot');
    await appendEvents(tx, 'bot', NOW, [CREATED]);
    const made = { created_at: 0, created_by: 'operator' };
    const version = { bot_id: 'bot', version: 1, hash: '', document: '{}', bundle_hash: null };
    await tx
      .insertInto('bot_versions')
      .values({ ...version, ...made })
      .execute();
  });
  const withFile = async (kind: 'backtest' | 'stress', ended_at: number | null): Promise<string> =>
    storage.write(async (tx) => {
      const task = { kind, bot_id: 'bot', version: 1, input: {} };
      const { task_id } = await queueTask(tx, NOW, 'operator', task);
      await tx
        .insertInto('task_files')
        .values({ task_id, name: 'a', place: 0, data: '' })
        .execute();
      if (ended_at === null) return task_id;
      const ended = { status: 'canceled', ended_at } as const;
      await tx.updateTable('tasks').set(ended).where('task_id', '=', task_id).execute();
      return task_id;
    });
  const kept = [
    await withFile('backtest', NOW - 29 * DAY),
    await withFile('backtest', null),
    await withFile('stress', NOW - 31 * DAY),
  ];
  await withFile('backtest', NOW - 31 * DAY);
  const store = { storage, clock: () => NOW };
  for (const task_file_days of [0, 30]) {
    for (const one of RETENTIONS) await one.end(store, { task_file_days });
    const left = await storage.read.selectFrom('task_files').select('task_id').execute();
    expect(left).toHaveLength(task_file_days === 0 ? 4 : 3);
    expect(left.map(({ task_id }) => task_id)).toEqual(expect.arrayContaining(kept));
  }
});
