import { afterEach, beforeEach, expect, it } from 'vitest';
import { readEvents } from '../../../src/events/read-events.ts';
import { onAlert, type RaisedAlert } from '../../../src/events/raised-alerts.ts';
import { parseState } from '../../../src/fleet/halts/end-sessions.ts';
import {
  endAllPaperSessions,
  haltAll,
  haltBot,
  recordHalt,
} from '../../../src/fleet/halts/halt.ts';
import type { Halt, HaltService } from '../../../src/fleet/halts/halts.ts';
import { resumeAll, resumeBot } from '../../../src/fleet/halts/resume.ts';
import { verifyHalt } from '../../../src/fleet/halts/verify-halt.ts';
import { storageUnavailable } from '../../../src/storage/storage-errors.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { newTables, type TestDatabase } from '../../storage/databases.ts';
import { makeSessions, STATE } from './sessions.ts';

const BY = 'administrator:ada';
const WHY = 'it buys too much';
const NOW = Date.UTC(2026, 0, 3);

let database: TestDatabase;
let storage: Storage;
let log: string[];
/** Count of calls of `wake`. */
let woken: number;
beforeEach(async () => {
  database = await newTables('sqlite');
  storage = await openStorage(database.location);
  log = [];
  woken = 0;
});
afterEach(async () => {
  await storage.close();
  await database.remove();
});

const serviceOn = (on: Storage): HaltService => ({
  storage: on,
  clock: () => NOW,
  release() {},
  wake: () => void (woken += 1),
  log: { warn: (what: { msg: string }) => void log.push(what.msg) } as HaltService['log'],
});

const halt = (): Promise<Halt> => storage.write((tx) => recordHalt(tx, NOW, BY, null, WHY));

/** Faults of the first deployment after a halt of all bots and `change`, which tampers with the database. */
async function faultsAfter(change: (task_id: string) => string): Promise<readonly string[]> {
  const [session] = await makeSessions(storage, { count: 1 });
  const report = await haltAll(serviceOn(storage), BY, WHY);
  expect(report.verified).toBe(true);
  await database.execute(change(session!.task_id));
  const { verified, deployments } = await verifyHalt(storage.read, report.halt, NOW);
  expect(verified).toBe(deployments[0]!.faults.length === 0);
  return deployments[0]!.faults;
}

it.each([
  [
    'not_in_log',
    'the end of its session was altered in the log',
    (id: string) =>
      `update bot_events set occurred_at = occurred_at + 1 where kind = 'run.ended' and run_id = '${id}'`,
  ],
  [
    'order_not_canceled',
    'a cancellation was altered in the log',
    (id: string) =>
      `update bot_events set occurred_at = occurred_at + 1 where kind = 'order.canceled' and run_id = '${id}'`,
  ],
  [
    'order_not_canceled',
    'an order works that the halt did not record',
    (id: string) =>
      `update trading_sessions set state = '${JSON.stringify({ ...STATE, working: [{ ...STATE.working[0], order: 9 }] })}' where task_id = '${id}'`,
  ],
] as const)('a halt reports %s if %s', async (fault, _, change) => {
  expect(await faultsAfter(change)).toEqual([fault]);
});

it('a lifted halt is not verified, although all deployments are', async () => {
  await makeSessions(storage, { count: 1 });
  const service = serviceOn(storage);
  const { halt: lifted } = await haltAll(service, BY, WHY);
  await resumeAll(service, BY, 'mended');
  const { verified, in_force, deployments } = await verifyHalt(storage.read, lifted, NOW);
  expect([verified, in_force]).toEqual([false, false]);
  expect(deployments).toMatchObject([{ verified: true }]);
});

it('resuming a bot is logged with its reason', async () => {
  const [session] = await makeSessions(storage, { count: 1 });
  const service = serviceOn(storage);
  const { halt: lifted } = await haltBot(service, BY, 'bot-0', WHY);
  await resumeBot(service, BY, 'bot-0', 'mended');
  const page = { after_seq: 0, limit: 100 };
  const { events } = await readEvents(storage.read, session!.bot_id, page);
  const { halt_id, scope } = lifted;
  expect(events.at(-1)).toMatchObject({
    kind: 'control.resumed',
    payload: { halt_id, scope, reason: 'mended', by: BY },
  });
});

it('a halt verifies every deployment, before and after its end, on several pages', async () => {
  await makeSessions(storage, { count: 501 });
  const latched = await halt();
  const before = await verifyHalt(storage.read, latched, NOW);
  expect(new Set(before.deployments.map(({ deployment_id }) => deployment_id)).size).toBe(501);
  expect(before.verified).toBe(false);
  expect(await storage.write((tx) => endAllPaperSessions(tx, NOW, latched))).toBe(501);
  const after = await verifyHalt(storage.read, latched, NOW);
  expect(after.verified).toBe(true);
  expect(after.deployments).toHaveLength(501);
});

it('a halt reads its deployments again unless all were verified before', async () => {
  await makeSessions(storage, { count: 3 });
  const { halt: latched, deployments } = await haltAll(serviceOn(storage), BY, WHY);
  const early = deployments.map((one) => ({ ...one, bot_id: 'read before' }));
  const botsAfter = async (known: typeof early): Promise<readonly string[]> =>
    (await verifyHalt(storage.read, latched, NOW, known)).deployments.map(({ bot_id }) => bot_id);
  expect(await botsAfter(early)).toEqual(['read before', 'read before', 'read before']);
  const bots = deployments.map(({ bot_id }) => bot_id).toSorted();
  expect((await botsAfter(early.slice(1))).toSorted()).toEqual(bots);
  const isFaulty = early.map((one, i) => ({ ...one, verified: i > 0 }));
  expect((await botsAfter(isFaulty)).toSorted()).toEqual(bots);
});

it('a halt ends no production deployment as if it were a paper session', async () => {
  const [session] = await makeSessions(storage, { count: 1 });
  await database.execute(`update bot_deployments set target = 'k8s'`);
  const latched = await halt();
  expect(await storage.write((tx) => endAllPaperSessions(tx, NOW, latched))).toBe(0);
  const task = storage.read.selectFrom('tasks').select('status');
  expect(await task.where('task_id', '=', session!.task_id).execute()).toEqual([
    { status: 'running' },
  ]);
});

it('a halt deletes the files of the tasks that it ends', async () => {
  const [session] = await makeSessions(storage, { count: 1 });
  const { task_id } = session!;
  const file = { task_id, name: 'summary.json', place: 0, data: 'H4sI' };
  await storage.write((tx) => tx.insertInto('task_files').values(file).execute());
  await haltAll(serviceOn(storage), BY, WHY);
  expect(await storage.read.selectFrom('task_files').select('name').execute()).toEqual([]);
});

it('a halt of all bots raises an alert, and every halt wakes the controllers', async () => {
  await makeSessions(storage, { count: 1 });
  const alerts: RaisedAlert[] = [];
  const close = onAlert((alert) => alerts.push(alert));
  try {
    await haltAll(serviceOn(storage), BY, WHY);
    expect(alerts).toEqual([{ control: 'halt_all', severity: 'critical', latency_ms: 0 }]);
    await haltBot(serviceOn(storage), BY, 'bot-0', WHY);
    expect(woken).toBe(2);
  } finally {
    close();
  }
});

it('a halt retries its record while the database does not answer', async () => {
  await makeSessions(storage, { count: 1 });
  let count = 0;
  const write: Storage['write'] = async (work, options) => {
    count += 1;
    if (count === 1) throw storageUnavailable(new Error('the disk is full'));
    return storage.write(work, options);
  };
  const report = await haltBot(serviceOn({ ...storage, write }), BY, 'bot-0', WHY);
  expect(report.verified).toBe(true);
});

it('a halt whose result cannot be read is in force, and is reported as not verified', async () => {
  await makeSessions(storage, { count: 1 });
  const read = new Proxy(storage.read, {
    get() {
      throw new Error('the disk is gone');
    },
  });
  const report = await haltBot(serviceOn({ ...storage, read }), BY, 'bot-0', WHY);
  expect(report).toMatchObject({ verified: false, in_force: false, deployments: [] });
  expect(log).toContain(`the result of halt ${report.halt.halt_id} cannot be read`);
  const { verified } = await verifyHalt(storage.read, report.halt, NOW);
  expect(verified).toBe(true);
});

it.each([
  ['no text', null],
  ['text that is not JSON', '{"working":'],
  ['no list of orders', JSON.stringify({ ...STATE, working: {} })],
  ['no sequence number', JSON.stringify({ ...STATE, seq: 1.5 })],
  ['no valid time', JSON.stringify({ ...STATE, time: 'today' })],
  ['orders before its first bar', JSON.stringify({ ...STATE, time: null })],
])('a recorded state with %s counts as unknown', (_, text) => {
  expect(parseState(text)).toBeUndefined();
  expect(parseState(JSON.stringify(STATE))).toEqual(STATE);
  expect(parseState(JSON.stringify({ ...STATE, time: null, working: [] }))).toBeDefined();
});

// A retry would last longer than the time limit.
it('a halt of an unknown bot fails without a retry', { timeout: 10_000 }, async () => {
  await expect(haltBot(serviceOn(storage), BY, 'unknown', WHY)).rejects.toMatchObject({
    code: 'not_found',
  });
});

it('a production deployment without pod or runner has only the faults of one that has not ended', async () => {
  const [session] = await makeSessions(storage, { count: 1 });
  const { deployment_id, bot_id } = session!;
  await database.execute(`update bot_deployments set target = 'k8s'`);
  await database.execute(
    `insert into production_deployments (deployment_id, bot_id, cluster, namespace, plan, waits, begun_at)
     values ('${deployment_id}', '${bot_id}', 'c', 'n', '{}', 0, ${NOW})`,
  );
  const { deployments } = await verifyHalt(storage.read, await halt(), NOW);
  expect(deployments.map(({ faults }) => faults)).toEqual([
    ['deployment_not_halted', 'task_not_ended', 'not_in_log'],
  ]);
});
