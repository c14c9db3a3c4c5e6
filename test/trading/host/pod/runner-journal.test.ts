import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { MINUTE } from '../../../../src/base/durations.ts';
import { openJournal, type Journal } from '../../../../src/trading/host/pod/runner-journal.ts';
import { barsEvent, type SessionBatch } from '../../../../src/trading/session-events.ts';
import type { SessionState } from '../../../../src/events/session-state.ts';
import { openStorage } from '../../../../src/storage/storage.ts';
import { SCRATCH } from '../../../scratch.ts';
import { isAtLength, some } from '../../../length.ts';

const OWNER = { deployment_id: 'd', version: 1, spec_hash: 'hash', venue: 'simulated' };
const START = Date.UTC(2026, 0, 1);
const BAR = { open: 1, high: 1, low: 1, close: 1, volume: 1 };
const timeOf = (step: number): number => START + step * MINUTE;

function newDirectory(): string {
  const directory = mkdtempSync(join(SCRATCH, 'service-local-journal-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

const open = (directory: string): Promise<Journal> =>
  openJournal(directory, OWNER, { archiveEvery: 500 });

/** Appends steps, numbered from those that it has. */
async function append(journal: Journal, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const step = journal.steps;
    const time = timeOf(step);
    const state: SessionState = {
      status: 'running',
      time: new Date(time).toISOString(),
      seq: step,
      cash: step,
      equity: step,
      positions: {},
      working: [],
    };
    await journal.append([barsEvent({ time, bars: { X: BAR } })], state, step + 1);
  }
}

/** Batches that the server receives after this count of recorded ones, until nothing is left. */
async function report(journal: Journal, recorded: number): Promise<SessionBatch[]> {
  const batches: SessionBatch[] = [];
  for (;;) {
    const batch = await journal.nextBatch(recorded + batches.length);
    if (batch === undefined) return batches;
    batches.push(batch);
  }
}

async function inputsOf(journal: Journal): Promise<number[]> {
  const times: number[] = [];
  for await (const input of journal.inputs()) {
    if (input.kind === 'data.bars') times.push(input.step.time);
  }
  return times;
}

const timesOf = (steps: number): number[] =>
  Array.from({ length: steps }, (_, step) => timeOf(step));

/**
 * Runs `work`, and copies the directory before and after each durable write: commits of its database,
 * and files that get their final name. A copy has what a killed process would leave.
 */
async function copyAtWrites(directory: string, work: () => Promise<void>): Promise<string[]> {
  const copies: string[] = [];
  const copy = (): void => {
    const target = newDirectory();
    cpSync(directory, target, { recursive: true });
    copies.push(target);
  };
  const { rename } = files;
  files.rename = async (from, to) => {
    copy();
    await rename(from, to);
    copy();
  };
  syncBuiltinESMExports();
  const prototype = Database.prototype as Pick<Database.Database, 'prepare'>;
  const { prepare } = prototype;
  prototype.prepare = function (this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql);
    if (sql !== 'commit') return statement;
    const run = statement.run.bind(statement) as () => Database.RunResult;
    return Object.assign(statement, {
      run: () => {
        copy();
        const result = run();
        copy();
        return result;
      },
    });
  } as typeof prepare;
  try {
    await work();
  } finally {
    files.rename = rename;
    syncBuiltinESMExports();
    prototype.prepare = prepare;
  }
  return copies;
}

const archives = (directory: string): string[] =>
  readdirSync(directory).filter((name) => name.startsWith('archive-'));

async function countRows(directory: string): Promise<number> {
  const storage = await openStorage({ file: join(directory, 'runner.sqlite') });
  const rows = await storage.read.selectFrom('bot_events').select('seq').execute();
  await storage.close();
  return rows.length;
}

test.runIf(isAtLength)(
  'archives what the server has recorded, and a new process continues from the archive',
  async () => {
    const directory = newDirectory();
    const journal = await open(directory);
    await append(journal, 1200);
    // Nothing is recorded yet, and nothing leaves the database.
    await journal.nextBatch(0);
    expect(archives(directory)).toEqual([]);
    const batches = await report(journal, 0);
    await append(journal, 5);
    const [more] = await report(journal, batches.length);
    for (let i = 0; i < 10; i += 1) await journal.nextBatch(batches.length + 1);
    const archived = archives(directory);
    expect(archived.length).toBeGreaterThan(2);
    await journal.close();
    expect(await countRows(directory)).toBeLessThan(1100);

    const again = await open(directory);
    expect(again.steps).toBe(1205);
    expect(again.state).toMatchObject({ cash: 1204 });
    expect(await inputsOf(again)).toEqual(timesOf(1205));
    // A server whose database is older than it was is sent the same batches again.
    expect(await report(again, 0)).toEqual([...batches, more]);
    await append(again, 1);
    expect(await report(again, batches.length + 1)).toMatchObject([{ steps: 1206 }]);
    await again.close();
  },
);

test.runIf(isAtLength)(
  'keeps unrecorded events and sends them after a restart, however many others are archived',
  async () => {
    const directory = newDirectory();
    const journal = await open(directory);
    await append(journal, 1100);
    const batches = await report(journal, 0);
    await append(journal, 700);
    for (let i = 0; i < 10; i += 1) await journal.nextBatch(batches.length);
    await journal.close();
    const again = await open(directory);
    const rest = await report(again, batches.length);
    const sent = [...batches, ...rest].flatMap(({ events }) =>
      events.map((one) => one.occurred_at),
    );
    expect(sent).toEqual(timesOf(1800));
    await again.close();
  },
);

test.each(
  some(1, [
    ['an event that was altered', (text: string) => text.replace('"version":1', '"version":2')],
    ['an event that is missing', (text: string) => text.slice(text.indexOf('\n') + 1)],
    ['an end that is missing', (text: string) => text.slice(0, text.lastIndexOf('{"head"'))],
  ] as const),
)('finds %s in the archive', async (_, change) => {
  const directory = newDirectory();
  const journal = await open(directory);
  await append(journal, 1100);
  const batches = await report(journal, 0);
  for (let i = 0; i < 10; i += 1) await journal.nextBatch(batches.length);
  await journal.close();
  const file = join(directory, archives(directory)[0]!);
  writeFileSync(file, gzipSync(change(gunzipSync(readFileSync(file)).toString())));
  await expect(open(directory)).rejects.toMatchObject({ code: 'events_tampered' });
});

test.runIf(isAtLength)('inputs that are archived while they are read are not lost', async () => {
  const directory = newDirectory();
  const journal = await openJournal(directory, OWNER);
  await append(journal, 2600);
  const batches = await report(journal, 0);
  await journal.close();
  for (const readBefore of [0, 1, 700]) {
    const again = await open(directory);
    const times: number[] = [];
    for await (const input of again.inputs()) {
      if (input.kind === 'data.bars') times.push(input.step.time);
      if (times.length === readBefore + 1) await again.nextBatch(batches.length);
    }
    expect(times).toEqual(timesOf(2600));
    await again.close();
  }
  expect(archives(directory)).toHaveLength(3);
});

test('a crash before or after any write of a new journal leaves one that can be continued', async () => {
  const directory = newDirectory();
  const copies = await copyAtWrites(directory, async () => {
    const journal = await openJournal(directory, OWNER);
    await append(journal, 2);
    await journal.close();
  });
  expect(copies.length).toBeGreaterThanOrEqual(8);
  for (const copy of copies) {
    const journal = await openJournal(copy, OWNER);
    await append(journal, 3 - journal.steps);
    expect(await inputsOf(journal)).toEqual(timesOf(3));
    expect(await report(journal, 0)).toMatchObject([{ number: 1, steps: 3 }]);
    await journal.close();
  }
});

test('a crash before or after any write of the archive loses no event and repeats none', async () => {
  const directory = newDirectory();
  const journal = await openJournal(directory, OWNER);
  await append(journal, 1100);
  const batches = await report(journal, 0);
  await journal.close();
  const copies = await copyAtWrites(directory, async () => {
    const archiving = await open(directory);
    await archiving.nextBatch(batches.length);
    await archiving.nextBatch(batches.length);
    await archiving.close();
  });
  // Two archives, each a file and then a commit that deletes its events.
  expect(copies.length).toBeGreaterThanOrEqual(8);
  const tried = isAtLength ? copies : copies.filter((_, index) => index % 4 === 0);
  for (const copy of tried) {
    const again = await open(copy);
    expect(await inputsOf(again)).toEqual(timesOf(1100));
    await append(again, 1);
    expect(await report(again, batches.length)).toMatchObject([{ steps: 1101 }]);
    expect(await inputsOf(again)).toEqual(timesOf(1101));
    expect(await again.nextBatch(0)).toEqual(batches[0]);
    await again.close();
  }
});

test.runIf(isAtLength)(
  'events are archived once although the directory could not be synced',
  async () => {
    const directory = newDirectory();
    // More than the distance of snapshots, which the archive never passes.
    const openLarge = () => openJournal(directory, OWNER, { archiveEvery: 1500 });
    const journal = await openLarge();
    await append(journal, 800);
    const { open: openFile } = files;
    let failures = 0;
    files.open = async (path, ...rest) => {
      if (path !== directory || failures > 0) return openFile(path, ...rest);
      failures += 1;
      throw Object.assign(new Error('i/o error'), { code: 'EIO', syscall: 'open' });
    };
    syncBuiltinESMExports();
    onTestFinished(() => {
      files.open = openFile;
      syncBuiltinESMExports();
    });
    const batches = await report(journal, 0);
    expect([failures, archives(directory).length]).toEqual([1, 1]);
    await append(journal, 1500);
    for (const batch of await report(journal, batches.length)) batches.push(batch);
    await journal.nextBatch(batches.length);
    await journal.close();
    const again = await openLarge();
    expect(await inputsOf(again)).toEqual(timesOf(2300));
    await again.close();
  },
);
