import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { MINUTE } from '../../../../src/market/bar-time.ts';
import { openJournal, type Journal } from '../../../../src/trading/host/pod/runner-journal.ts';
import { barsEvent, type SessionBatch } from '../../../../src/trading/session-events.ts';
import { SCRATCH } from '../../../scratch.ts';

const OWNER = { deployment_id: 'd', version: 1, spec_hash: 'hash', venue: 'simulated' };
const BAR = { open: 1, high: 1, low: 1, close: 1, volume: 1 };
const ARCHIVING = { archiveEvery: 500 };

function newDirectory(): string {
  const directory = mkdtempSync(join(SCRATCH, 'service-local-journal-crash-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

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

/** Appends bars until the journal has this count of steps. */
async function appendUntil(journal: Journal, steps: number): Promise<void> {
  for (let step = journal.steps; step < steps; step += 1) {
    const account = { cash: step, equity: step, positions: {}, working: [] };
    const time = new Date(step * MINUTE).toISOString();
    const state = { status: 'running', time, seq: step, ...account } as const;
    const bars = barsEvent({ time: step * MINUTE, bars: { X: BAR } });
    await journal.append([bars], state, step + 1);
  }
}

async function stepsOf(journal: Journal): Promise<number[]> {
  const steps: number[] = [];
  for await (const input of journal.inputs()) {
    if (input.kind === 'data.bars') steps.push(input.step.time / MINUTE);
  }
  return steps;
}

async function report(journal: Journal, recorded: number): Promise<SessionBatch[]> {
  const batches: SessionBatch[] = [];
  for (;;) {
    const batch = await journal.nextBatch(recorded + batches.length);
    if (batch === undefined) return batches;
    batches.push(batch);
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, step) => step);

test('a crash before or after any write of a new journal leaves one that can be continued', async () => {
  const directory = newDirectory();
  const copies = await copyAtWrites(directory, async () => {
    const journal = await openJournal(directory, OWNER);
    await appendUntil(journal, 2);
    await journal.close();
  });
  expect(copies.length).toBeGreaterThanOrEqual(8);
  for (const copy of copies) {
    const journal = await openJournal(copy, OWNER);
    await appendUntil(journal, 3);
    expect(await stepsOf(journal)).toEqual(upTo(3));
    expect(await report(journal, 0)).toMatchObject([{ number: 1, steps: 3 }]);
    await journal.close();
  }
});

test('a crash before or after any write of the archive loses no event and repeats none', async () => {
  const directory = newDirectory();
  const journal = await openJournal(directory, OWNER);
  await appendUntil(journal, 1100);
  const batches = await report(journal, 0);
  await journal.close();
  const copies = await copyAtWrites(directory, async () => {
    const archiving = await openJournal(directory, OWNER, ARCHIVING);
    await archiving.nextBatch(batches.length);
    await archiving.nextBatch(batches.length);
    await archiving.close();
  });
  // Two archives, each a file and then a commit that deletes its events.
  expect(copies.length).toBeGreaterThanOrEqual(8);
  for (const copy of copies) {
    const again = await openJournal(copy, OWNER, ARCHIVING);
    expect(await stepsOf(again)).toEqual(upTo(1100));
    await appendUntil(again, 1101);
    expect(await report(again, batches.length)).toMatchObject([{ steps: 1101 }]);
    expect(await stepsOf(again)).toEqual(upTo(1101));
    expect(await again.nextBatch(0)).toEqual(batches[0]);
    await again.close();
  }
});
