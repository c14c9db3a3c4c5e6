/** Counts what the writes of sessions and halts cost, since their number grows with that of the bots. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { haltAll } from '../../src/fleet/halts/halt.ts';
import type { HaltService } from '../../src/fleet/halts/halts.ts';
import { createBot } from '../../src/fleet/registry/bots.ts';
import type { Claim } from '../../src/fleet/tasks/claim.ts';
import { recordSessionHeartbeats } from '../../src/fleet/tasks/heartbeats.ts';
import { claimTasks } from '../../src/fleet/tasks/lifecycle.ts';
import { startPaper } from '../../src/fleet/tasks/paper.ts';
import { botWrite, readSession, recordBatch } from '../../src/fleet/tasks/session-record.ts';
import type { TaskService } from '../../src/fleet/tasks/tasks.ts';
import type { SessionState } from '../../src/events/session-state.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { costOf, sqliteCostOf } from '../storage/count-statements.ts';
import { DATABASES, newDatabase } from '../storage/databases.ts';
import { TEMPORARY } from '../scratch.ts';
import { makeSessions } from './halts/sessions.ts';
import { fillCatalogue, tradingDocument } from './tasks/market.ts';

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(TEMPORARY, 'service-local-statements-'));
  await fillCatalogue(catalogueDir, 1);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

const NOW = Date.UTC(2026, 0, 3);
const BY = 'administrator:ada';

/**
 * Statements of each write, and round trips on PostgreSQL. A batch has one bar. Batches that are recorded
 * at the same time share statements on PostgreSQL.
 */
const COSTS = {
  sqlite: { start: [16], batch: [10], batches: [18], heartbeats: [5] },
  postgres: { start: [17, 17], batch: [12, 7], batches: [12, 7], heartbeats: [6, 6] },
};
const HALTED = 100;

test.each(DATABASES)('writes of sessions and halts need few statements on %s', async (kind) => {
  const database = await newDatabase(kind);
  const storage = await openStorage(database.location);
  const service: TaskService = { storage, clock: () => NOW, catalogueDir };
  const cost = async (work: () => Promise<unknown>): Promise<readonly number[]> =>
    kind === 'sqlite' ? [await sqliteCostOf(work)] : Object.values(await costOf(work));
  const addBot = async (slug: string): Promise<string> => {
    const document = tradingDocument(slug, 'sma_crossover', { fast: 3, slow: 8 });
    return (await createBot(service, 'operator', { document })).bot_id;
  };
  const [first, second] = [await addBot('first'), await addBot('second')];
  await startPaper(service, BY, first, {});
  const started = await cost(() => startPaper(service, BY, second, {}));

  const claims = await storage.write((tx) => claimTasks(tx, NOW, 'worker', 'paper', 2));
  const [claim, other] = claims as [Claim, Claim];
  const { state: text } = await readSession(storage.read, claim.task_id);
  const record = (number: number, of = claim) => {
    const time = new Date(Date.UTC(2000, 0, number)).toISOString();
    const state = { ...(JSON.parse(text) as SessionState), time, equity: 100 + number };
    const payload = { time, bars: { SPX: [1, 2, 1, number, 3] } };
    const events = [{ kind: 'data.bars' as const, occurred_at: Date.parse(time), payload }];
    const batch = { number, events, state, steps: number, total: 300, made_at: NOW };
    return storage.write((tx) => recordBatch(tx, of, NOW, batch as never), botWrite(of, events));
  };
  for (const number of [1, 2]) for (const one of [claim, other]) await record(number, one);
  const batch = await cost(() => record(3));
  await record(3, other);
  const batches = await cost(() => Promise.all([record(4), record(4, other)]));

  const sessions = [{ claim, isProven: true }];
  const heartbeats = await cost(() =>
    storage.write((tx) => recordSessionHeartbeats(tx, NOW, 'worker', sessions)),
  );
  expect({ start: started, batch, batches, heartbeats }).toEqual(COSTS[kind]);

  await makeSessions(storage, { count: HALTED });
  const halts: HaltService = { ...service, release() {}, wake() {}, log: { warn() {} } };
  const [halt] = await cost(() => haltAll(halts, BY, 'a test'));
  // SQLite takes fewer values in a statement.
  expect(halt! / HALTED).toBeLessThan(kind === 'sqlite' ? 0.6 : 0.4);
  await storage.close();
  await database.remove();
});
