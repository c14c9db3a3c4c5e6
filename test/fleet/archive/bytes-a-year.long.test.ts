import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import { startPaper } from '../../../src/fleet/tasks/paper.ts';
import { startTaskRunner } from '../../../src/fleet/tasks/task-runner.ts';
import { getTask, type TaskService } from '../../../src/fleet/tasks/tasks.ts';
import { archiveEvents } from '../../../src/server/event-archives.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { TEMPORARY } from '../../scratch.ts';
import { tradingDocument } from '../../server/trader.ts';
import { DATABASES, newDatabase } from '../../storage/databases.ts';
import { fillCatalogue } from '../tasks/market.ts';

const BARS = 20_000;
const BARS_A_YEAR = 365 * 24 * 60;
const MB = 1e6;
/** A measured size may differ from the documented one by this share. */
const TOLERANCE = 0.2;
const PAGE = join(import.meta.dirname, '../../../docs/how-to/retention.md');
const PLACES = { sqlite: 'SQLite', postgres: 'PostgreSQL' };

let directory: string;
let documented: ReadonlyMap<string, readonly number[]>;
beforeAll(async () => {
  directory = await mkdtemp(join(TEMPORARY, 'service-local-bytes-'));
  await fillCatalogue(directory, BARS);
  const rows = (await readFile(PAGE, 'utf8')).matchAll(/^\| ([^|]+) \| (\d+) MB \| (\d+) MB \|$/gm);
  documented = new Map([...rows].map(([, place, ...sizes]) => [place!, sizes.map(Number)]));
});
afterAll(() => rm(directory, { recursive: true }));

/** Bytes of events with the indexes of their tables. */
async function eventBytes({ read, kind }: Storage): Promise<number> {
  const tables = ['bot_events', 'packed_bars', 'stored_bars', 'bot_snapshots'];
  const names = sql.join(tables);
  const query =
    kind === 'sqlite'
      ? sql<{ readonly bytes: number | string }>`select sum(pgsize) as bytes from dbstat
          where name in (select name from sqlite_schema where tbl_name in (${names}))`
      : sql<{ readonly bytes: number | string }>`select sum(pg_total_relation_size(oid)) as bytes
          from pg_class where relkind = 'r' and relname in (${names})`;
  return Number((await query.execute(read)).rows[0]!.bytes);
}

describe.each(DATABASES)('the events of one-minute bars on %s', (kind) => {
  test('take the bytes a year that the page on retention states', async () => {
    const database = await newDatabase(kind);
    const storage = await openStorage(database.location);
    const archiveDir = join(directory, `archive-${kind}`);
    const service: TaskService = { storage, clock: Date.now, catalogueDir: directory, archiveDir };
    const log = createLog(() => {}, false);
    const options = { workers: 1, paperSessions: 1, timeoutMs: 60_000, log };
    const runner = startTaskRunner(service, options);
    const megabytes: number[] = [];
    for (const slug of ['first', 'second']) {
      const before = await eventBytes(storage);
      // A trade every few hours.
      const document = tradingDocument(slug, 'LONG', '1m', 60);
      const { bot_id } = await createBot(service, 'operator', { document });
      const { task_id } = await startPaper(service, 'operator', bot_id, { speed: 'max' });
      await vi.waitFor(
        async () =>
          expect(await getTask(storage.read, task_id)).toMatchObject({ status: 'success' }),
        { timeout: 60_000, interval: 50 },
      );
      megabytes.push(yearly((await eventBytes(storage)) - before));
    }
    await runner.stop();
    const archive = { storage, directory: archiveDir, clock: Date.now };
    const files: number[] = [];
    await archiveEvents(archive, undefined, Date.now() + 1, (part) => files.push(part.file_bytes));
    const perBot = files.reduce((sum, bytes) => sum + bytes, 0) / 2;
    expect({ [PLACES[kind]]: megabytes, archive: [yearly(perBot), yearly(perBot)] }).toEqual({
      [PLACES[kind]]: near(documented.get(PLACES[kind])),
      archive: near(documented.get('archive')),
    });
    await storage.close();
    await database.remove();
  });
});

function yearly(bytes: number): number {
  return Math.round(((bytes / BARS) * BARS_A_YEAR) / MB);
}

function near(sizes: readonly number[] = []): readonly unknown[] {
  return sizes.map((size) => ({
    asymmetricMatch: (measured: number) => Math.abs(measured - size) <= TOLERANCE * size,
    toString: () => `about ${size}`,
  }));
}
