import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Archive } from '../../../src/fleet/archive/archive-bot.ts';
import { verifyBot } from '../../../src/fleet/archive/verify-archive.ts';
import { archiveEvents, restoreEvents } from '../../../src/server/event-archives.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { SCRATCH } from '../../scratch.ts';
import { DATABASES, newTables, type TestDatabase } from '../../storage/databases.ts';
import type { KillAtStep } from './kill-at-step.ts';
import { allEvents, countRows, newBot, recordSession, startOf } from './recorded.ts';

const KILLED = join(import.meta.dirname, 'kill-at-step.ts');

describe.each(DATABASES)('archives of events on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let archive: Archive;

  beforeAll(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    const directory = await mkdtemp(join(SCRATCH, 'archive-'));
    archive = { storage, directory, clock: Date.now };
  });

  afterAll(async () => {
    await storage.close();
    await database.remove();
    await rm(archive.directory, { recursive: true });
  });

  /** Whether the process was killed before it had finished. */
  const isKilledAt = async (at: number, bot: string, work: KillAtStep['work']) => {
    const { location } = database;
    const { directory } = archive;
    const asked: KillAtStep = { location, directory, bot, work, at };
    return promisify(execFile)(process.execPath, [KILLED, JSON.stringify(asked)]).then(
      () => false,
      (error: { readonly signal?: string; readonly stderr?: string }) => {
        expect(error).toMatchObject({ signal: 'SIGKILL' });
        return true;
      },
    );
  };

  test('lose no event when a command is killed between any two steps', async () => {
    const bot = 'killed';
    await newBot(storage, bot, '2026-01');
    await recordSession(storage, bot, { run_id: 'a', at: startOf('2026-01'), bars: 50 });
    const at = startOf('2026-02') - 20 * 60_000;
    await recordSession(storage, bot, { run_id: 'b', at, bars: 60 });
    await recordSession(storage, bot, { run_id: 'c', at: startOf('2026-03'), bars: 5 });
    const events = await allEvents(storage, bot);
    const before = startOf('2026-03');
    let steps = 0;
    for (const work of [{ before }, 'restore'] as const) {
      for (let place = 1, wasKilled = true; wasKilled; place += 1) {
        if (work === 'restore') {
          await archiveEvents(archive, bot, before, () => {});
        }
        wasKilled = await isKilledAt(place, bot, work);
        steps += 1;
        expect(await verifyBot(archive, bot)).toMatchObject({ seq: events.length, fault: null });
        const { archived_seq } = await verifyBot(archive, bot);
        if (archived_seq > 0) await restoreEvents(archive, bot, undefined, () => {});
        expect(await allEvents(storage, bot)).toEqual(events);
      }
    }
    expect(steps).toBeGreaterThan(20);
    await archiveEvents(archive, bot, before, () => {});
    const names = await readdir(archive.directory, { recursive: true });
    expect(names.filter((name) => name.includes('.tmp'))).toEqual([]);
  });

  test('keep the tables flat for a year, and every month verifies', async () => {
    const bot = 'year';
    await newBot(storage, bot, '2025-01');
    const start = await countRows(storage);
    const sizes: number[] = [];
    const events: unknown[] = [];
    for (let month = 0; month < 12; month += 1) {
      const at = Date.UTC(2025, month);
      await recordSession(storage, bot, { run_id: `month ${month}`, at, bars: 3000 });
      const known = events.length;
      events.push(...(await allEvents(storage, bot, known)));
      await archiveEvents(archive, bot, Date.UTC(2025, month), () => {});
      const rows = await countRows(storage);
      sizes.push(Object.values(rows).reduce((sum, count) => sum + count, 0));
    }
    const base = Object.values(start).reduce((sum, count) => sum + count, 0);
    // From the second month on, the tables hold one month.
    const grown = sizes.map((size) => size - base);
    expect(Math.max(...grown)).toBeLessThan(1.1 * grown[0]!);
    const verified = await verifyBot(archive, bot);
    expect(verified).toMatchObject({ fault: null, files: 11, seq: events.length });
    await restoreEvents(archive, bot, undefined, () => {});
    expect((await allEvents(storage, bot)).length).toBe(events.length);
    expect(await allEvents(storage, bot)).toEqual(events);
  });
});
