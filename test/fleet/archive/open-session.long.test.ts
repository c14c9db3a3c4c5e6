import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Summary } from '../../../src/backtest/summary.ts';
import { verifyBot } from '../../../src/fleet/archive/verify-archive.ts';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import { startPaper } from '../../../src/fleet/tasks/paper.ts';
import { getResult, getTask } from '../../../src/fleet/tasks/tasks.ts';
import { archiveEvents, restoreEvents } from '../../../src/server/event-archives.ts';
import { openStorage } from '../../../src/storage/storage.ts';
import { TEMPORARY } from '../../scratch.ts';
import { tradingDocument } from '../../server/trader.ts';
import { newDatabase } from '../../storage/databases.ts';
import { fillCatalogue } from '../tasks/market.ts';
import { allEvents, countRows, newBot, recordSession } from './recorded.ts';
import type { SessionProcess } from './session-process.ts';

const PROGRAM = join(import.meta.dirname, 'session-process.ts');
const MONTHS = 12;
/** Bars that the session records in a month. */
const BARS = 3000;
/** Bars of a minute, 2,000 a second. */
const SPEED = 60 * 2000;

test('a year of one open session, whose worker is killed each month, keeps the tables flat', async () => {
  const directory = await mkdtemp(join(TEMPORARY, 'service-local-year-'));
  const catalogueDir = join(directory, 'catalogue');
  const archiveDir = join(directory, 'archive');
  await fillCatalogue(catalogueDir, MONTHS * BARS);
  const database = await newDatabase('sqlite');
  const storage = await openStorage(database.location);
  const archive = { storage, directory: archiveDir, clock: Date.now };
  let now = Date.UTC(2025, 0, 2);
  const service = { storage, clock: () => now, catalogueDir, archiveDir };
  const start = async (slug: string, speed: number | 'max') => {
    const document = tradingDocument(slug, 'LONG', '1m', 20);
    const { bot_id } = await createBot(service, 'operator', { document });
    const { task_id } = await startPaper(service, 'operator', bot_id, { speed });
    return { bot_id, task_id };
  };
  /** Runs sessions until `isDone`, and kills the process. */
  const runUntil = async (isDone: () => Promise<boolean>): Promise<void> => {
    const asked: SessionProcess = { location: database.location, catalogueDir, archiveDir, now };
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(asked)]);
    const errors: string[] = [];
    child.stderr.on('data', (text: Buffer) => errors.push(String(text)));
    const ended = once(child, 'exit');
    const check = async () => expect(await isDone(), errors.join('')).toBe(true);
    await vi
      .waitFor(check, { timeout: 120_000, interval: 20 })
      .finally(() => child.kill('SIGKILL'));
    await ended;
  };
  const resultOf = async (task_id: string): Promise<Summary> =>
    JSON.parse(await getResult(storage.read, task_id)) as Summary;
  const hasEnded = async (task_id: string) =>
    (await getTask(storage.read, task_id)).status === 'success';

  try {
    const whole = await start('whole', 'max');
    await runUntil(() => hasEnded(whole.task_id));
    const base = Object.values(await countRows(storage)).reduce((sum, count) => sum + count, 0);
    const open = await start('open', SPEED);
    for (const bot of ['ends', 'stays']) await newBot(storage, bot, '2025-01');
    const bots = [open.bot_id, 'ends', 'stays'];
    const grown: number[] = [];
    for (let month = 0; month < MONTHS; month += 1) {
      now = Date.UTC(2025, month, 2);
      const steps = BARS * (month + 1);
      const isLast = month === MONTHS - 1;
      await runUntil(async () => {
        const { progress_done, status } = await getTask(storage.read, open.task_id);
        return isLast ? status === 'success' : progress_done >= steps;
      });
      const at = now;
      await recordSession(storage, 'ends', { run_id: `month ${month}`, at, bars: 2000 });
      await recordSession(storage, 'stays', { run_id: 'stays', at, bars: 2000, ends: false });
      for (const bot of bots) await archiveEvents(archive, bot, Date.UTC(2025, month), () => {});
      const rows = Object.values(await countRows(storage));
      grown.push(rows.reduce((sum, count) => sum + count, 0) - base);
    }
    // The speed of the machine decides how far the session is at the end of a month.
    expect(Math.max(...grown)).toBeLessThan(1.5 * grown[0]!);
    const [expected, result] = [await resultOf(whole.task_id), await resultOf(open.task_id)];
    expect(result.hashes).toEqual(expected.hashes);
    expect(result.trades).toEqual(expected.trades);
    for (const bot of bots) {
      const verified = await verifyBot(archive, bot);
      expect(verified).toMatchObject({ fault: null, files: MONTHS - 1 });
      await restoreEvents(archive, bot, undefined, () => {});
      const events = await allEvents(storage, bot);
      expect(events).toHaveLength(verified.seq);
      const bars = events.filter(({ kind }) => kind === 'data.bars');
      expect(bars).toHaveLength(bot === open.bot_id ? MONTHS * BARS : MONTHS * 2000);
    }
  } finally {
    await storage.close();
    await database.remove();
    await rm(directory, { recursive: true });
  }
}, 540_000);
