import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import { verifyEvents } from '../../../src/events/verify-events.ts';
import { haltAll, haltBot, type HaltReport } from '../../../src/fleet/halts/halt.ts';
import { listHalts, type HaltService } from '../../../src/fleet/halts/halts.ts';
import { resumeAll, resumeBot } from '../../../src/fleet/halts/resume.ts';
import { readAudit } from '../../../src/identity/audit.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import type { Db } from '../../../src/storage/tables.ts';
import { storageUnavailable } from '../../../src/storage/storage-errors.ts';
import type { Claim } from '../../../src/fleet/tasks/claim.ts';
import { claimTasks } from '../../../src/fleet/tasks/lifecycle.ts';
import { startPaper } from '../../../src/fleet/tasks/paper.ts';
import { recordBatch } from '../../../src/fleet/tasks/session-record.ts';
import type { TaskService } from '../../../src/fleet/tasks/tasks.ts';
import { DATABASES, newDatabase, newTables, type TestDatabase } from '../../storage/databases.ts';
import { fillCatalogue } from '../tasks/market.ts';
import { tradingDocument } from '../../server/trader.ts';
import { isAtLength } from '../../length.ts';
import { makeSessions, STATE, WORKER, type MadeSession } from './sessions.ts';

const BY = 'administrator:ada';
const WHY = 'it buys too much';

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-halts-'));
  await fillCatalogue(catalogueDir, 10);
});
afterAll(() => rm(catalogueDir, { recursive: true }));

let database: TestDatabase;
let storage: Storage;
let now: number;
let released: string[];
let log: string[];
let service: HaltService & TaskService;

function useDatabase(kind: Storage['kind'], make = newTables): void {
  beforeEach(async () => {
    database = await make(kind);
    storage = await openStorage(database.location);
    now = Date.UTC(2026, 0, 3);
    released = [];
    log = [];
    service = serviceOn(storage);
  });
  afterEach(async () => {
    await storage.close();
    await database.remove();
  });
}

function serviceOn(on: Storage): HaltService & TaskService {
  return {
    storage: on,
    clock: () => now,
    catalogueDir,
    release: (task_ids) => void released.push(...task_ids),
    wake() {},
    log: { warn: (what: { msg: string }) => void log.push(what.msg) } as HaltService['log'],
  };
}

/** The database, when it does not do some of its writes, counted from 1. */
function refusing(isRefused: (count: number) => boolean): Storage {
  let count = 0;
  return {
    ...storage,
    async write(work, options) {
      count += 1;
      if (isRefused(count)) throw storageUnavailable(new Error('the disk is full'));
      return storage.write(work, options);
    },
  };
}

/** Verified events in the log of a bot after the start of its session. */
async function toldOf({ bot_id, task_id }: MadeSession) {
  const { events } = await readEvents(storage.read, bot_id, { after_seq: 5, limit: 100 });
  expect(await verifyEvents(storage.read, bot_id)).toMatchObject({ fault: undefined });
  return events.map(({ kind, run_id, payload }) => {
    return [kind, run_id === task_id ? payload : { ...payload, run_id }] as const;
  });
}

async function audited() {
  const { entries } = await readAudit(storage.read, 0, 100);
  return entries.map(({ actor, action, target, details }) => ({ actor, action, target, details }));
}

async function statusOf({ deployment_id, task_id }: MadeSession) {
  const { status } = await storage.read
    .selectFrom('bot_deployments')
    .select('status')
    .where('deployment_id', '=', deployment_id)
    .executeTakeFirstOrThrow();
  const task = await storage.read
    .selectFrom('tasks')
    .select(['status', 'worker_id', 'ended_at'])
    .where('task_id', '=', task_id)
    .executeTakeFirstOrThrow();
  return [status, task.status, task.worker_id, task.ended_at];
}

const claimOf = ({ task_id, bot_id, deployment_id }: MadeSession): Claim => ({
  task_id,
  bot_id,
  deployment_id,
  traceparent: null,
  kind: 'paper',
  version: 1,
  attempts: 1,
  worker_id: WORKER,
  input: '{}',
});

const batch = {
  number: 8,
  events: [{ kind: 'data.bars', occurred_at: 0, payload: {} }],
  state: STATE,
  steps: 21,
  total: null,
};

const record = (session: MadeSession): Promise<boolean> =>
  storage.write((tx) => recordBatch(tx, claimOf(session), now, batch));

const claim = (): Promise<Claim[]> =>
  storage.write((tx) => claimTasks(tx, now, WORKER, 'paper', 100));

/** The deployments of a report that are not verified. */
const faultsOf = ({ deployments }: HaltReport) =>
  deployments
    .filter(({ verified }) => !verified)
    .map(({ deployment_id, faults, orders }) => [
      deployment_id,
      faults,
      orders.map(({ verified }) => verified),
    ]);

describe.each(DATABASES)('halts on %s', (kind) => {
  useDatabase(kind);

  it('a halt ends the trading of one bot only, and logs each canceled order', async () => {
    const [mine, other] = await makeSessions(storage, { count: 2 });
    const report = await haltBot(service, BY, 'bot-0', WHY);
    const { halt_id } = report.halt;
    const orders = [3, 4].map((order) => ({ order, symbol: 'SPX', verified: true }));
    expect(report).toMatchObject({ verified: true, in_force: true, halt: { reason: WHY } });
    expect(report.deployments).toEqual([
      { ...mine, target: 'paper', status: 'halted', verified: true, faults: [], orders },
    ]);
    expect(released).toEqual([mine!.task_id]);

    const why = { halt_id, scope: 'bot', reason: WHY, by: BY };
    const canceled = { kind: 'order.canceled', time: STATE.time, symbol: 'SPX', reason: 'halted' };
    const { deployment_id } = mine!;
    expect(await toldOf(mine!)).toEqual([
      ['control.halted', { ...why, run_id: null }],
      ['alert.raised', expect.objectContaining({ control: 'halt', severity: 'critical' })],
      ['order.canceled', { seq: 6, order: 3, ...canceled }],
      ['order.canceled', { seq: 7, order: 4, ...canceled }],
      ['session.state', { deployment_id, ...STATE, status: 'halted', seq: 7, working: [] }],
      ['run.ended', { deployment_id, status: 'canceled', halt: why }],
    ]);
    expect(await audited()).toEqual([
      {
        actor: BY,
        action: 'bots.halt',
        target: `bot:${mine!.bot_id}`,
        details: {
          halt_id,
          reason: WHY,
          repeated: false,
          latched_ms: expect.any(Number) as number,
        },
      },
    ]);
    expect(await statusOf(mine!)).toEqual(['halted', 'canceled', null, now]);
    // The worker of the halted session can no longer record events; that of another one can.
    expect(await record(mine!)).toBe(false);
    expect(await record(other!)).toBe(true);
    expect(await statusOf(other!)).toEqual(['running', 'running', WORKER, null]);
  });

  it('a halt of all bots ends all running and queued sessions, and prevents new ones until all bots are resumed', async () => {
    const count = isAtLength ? 300 : 20;
    const running = await makeSessions(storage, { count });
    const waiting = await makeSessions(storage, { count: 2, slug: 'new', waiting: true });
    const report = await haltAll(service, BY, WHY);
    const { halt_id } = report.halt;
    expect(report).toMatchObject({ verified: true, halt: { bot_id: null } });
    expect(report.deployments).toHaveLength(count + 2);
    expect(released).toHaveLength(count + 2);
    const why = { halt_id, scope: 'all', reason: WHY, by: BY };
    for (const session of [running.at(-1)!, waiting[0]!]) {
      const { deployment_id } = session;
      expect(await statusOf(session)).toEqual(['halted', 'canceled', null, now]);
      const told = await toldOf(session);
      expect(told.at(-1)).toEqual(['run.ended', { deployment_id, status: 'canceled', halt: why }]);
    }
    expect(await claim()).toEqual([]);

    await createBot(service, BY, { document: tradingDocument('later', 'SPX', '1d', 10) });
    const start = () => startPaper(service, BY, 'later', {});
    const halted = { code: 'conflict', reason: 'halted', remedy: /bots resume-all/ };
    await expect(start()).rejects.toMatchObject(halted);
    await haltBot(service, BY, 'later', WHY);
    await expect(resumeBot(service, BY, 'later', 'no')).rejects.toMatchObject(halted);
    now += 1000;
    expect(await resumeAll(service, BY, 'mended')).toMatchObject({
      halt_id,
      lifted_at: now,
      lifted_by: BY,
      lift_reason: 'mended',
      deployments: count + 2,
    });
    await expect(start()).rejects.toMatchObject({
      ...halted,
      remedy: /bots resume later --reason "…"`/,
    });
    await resumeBot(service, BY, 'later', 'mended');
    await expect(start()).resolves.toMatchObject({ status: 'queued' });
    const conflict = { code: 'conflict', reason: 'not_halted' };
    await expect(resumeAll(service, BY, 'x')).rejects.toMatchObject(conflict);
    await expect(resumeBot(service, BY, 'later', 'x')).rejects.toMatchObject(conflict);
    expect((await audited()).map(({ action }) => action)).toEqual([
      'bots.halt_all',
      'alert.raised',
      'bots.halt',
      'bots.resume_all',
      'bots.resume',
    ]);
  });

  it('a halt leaves nothing running when sessions start during the halt', async () => {
    const atLength = kind === 'sqlite' ? 1000 : 100;
    const count = isAtLength ? atLength : 30;
    await createBot(service, BY, { document: tradingDocument('sma', 'SPX', '1d', 10) });
    const starts = Array.from({ length: count }, () =>
      startPaper(service, BY, 'sma', {}).catch((error: unknown) => error),
    );
    await claim();
    const report = await haltBot(service, BY, 'sma', WHY);
    const results = await Promise.all(starts);
    const refused = results.filter((result) => result instanceof ServiceError);
    expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(['halted']));
    const active = storage.read.selectFrom('bot_deployments').where('ended_at', 'is', null);
    expect(await active.selectAll().execute()).toEqual([]);
    const began = storage.read.selectFrom('bot_deployments').where('status', '=', 'halted');
    expect(await began.select('task_id').execute()).toHaveLength(count - refused.length);
    expect(refused.length).toBeGreaterThan(0);
    expect(report.verified).toBe(true);
    expect(await claim()).toEqual([]);
  });

  it('the list of halts begins with those in force', async () => {
    await makeSessions(storage, { count: 3 });
    for (const n of [0, 1, 2]) await haltBot(service, BY, `bot-${n}`, `${(now += 1)}`);
    await resumeBot(service, BY, 'bot-2', 'mended');
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listHalts(storage.read, { limit: 1, cursor });
      found.push(...page.items.map(({ reason }) => reason));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    expect(found).toEqual([now - 1, now - 2, now].map(String));
  });
});

describe.each(DATABASES)('halts on %s under repetition, faults and load', (kind) => {
  useDatabase(kind);

  it('a repeated halt ends nothing twice, and is verified again', async () => {
    const [mine] = await makeSessions(storage, { count: 1 });
    const first = await haltBot(service, BY, 'bot-0', WHY);
    const told = await toldOf(mine!);
    now += 1000;
    const again = await haltBot(service, 'administrator:bob', mine!.bot_id, 'to be sure');
    const { latched_ms, verified_ms } = again;
    expect(again).toEqual({ ...first, latched_ms, verified_ms });
    expect(await toldOf(mine!)).toEqual(told);
    const { halt_id } = first.halt;
    expect((await audited()).at(-1)).toMatchObject({
      actor: 'administrator:bob',
      details: {
        halt_id,
        reason: 'to be sure',
        repeated: true,
        latched_ms: expect.any(Number) as number,
      },
    });
    const { items } = await listHalts(storage.read, { limit: 10 });
    expect(items).toMatchObject([{ halt_id, deployments: 1, lifted_at: null }]);
  });

  it('a halt ends no session that started after it was lifted', async () => {
    let writes = 0;
    let started: readonly MadeSession[] = [];
    const late: Storage = {
      ...storage,
      async write(work, options) {
        writes += 1;
        // The first write records the halt; the second would end the running sessions.
        if (writes === 2) {
          await resumeAll(service, BY, 'it is mended');
          started = await makeSessions(storage, { count: 1 });
        }
        return storage.write(work, options);
      },
    };
    const report = await haltAll({ ...service, storage: late }, BY, WHY);
    expect(report).toMatchObject({ verified: false, in_force: false });
    expect((await statusOf(started[0]!)).slice(0, 2)).toEqual(['running', 'running']);
  });

  it('a halt ends sessions with an unreadable record, and reports their orders as unknown', async () => {
    const [lost, mine] = await makeSessions(storage, { count: 2 });
    await database.execute(
      `update trading_sessions set state = '{"working":' where task_id = '${lost!.task_id}'`,
    );
    const report = await haltAll(service, BY, WHY);
    expect(report.verified).toBe(false);
    expect(faultsOf(report)).toEqual([[lost!.deployment_id, ['orders_unknown'], []]]);
    for (const one of [lost!, mine!]) {
      expect(await statusOf(one)).toEqual(['halted', 'canceled', null, now]);
    }
  });

  it.each(['bot', 'all'] as const)(
    'an interrupted halt of %s must be repeated before resuming',
    async (scope) => {
      const [mine] = await makeSessions(storage, { count: 1 });
      const ask = (on: Storage) =>
        scope === 'bot'
          ? haltBot({ ...service, storage: on }, BY, 'bot-0', WHY)
          : haltAll({ ...service, storage: on }, BY, WHY);
      const resume = () =>
        scope === 'bot' ? resumeBot(service, BY, 'bot-0', WHY) : resumeAll(service, BY, WHY);
      const brokenOff = await ask(refusing((count) => count > 1));
      expect(brokenOff).toMatchObject({ verified: false, in_force: true });
      // The session that remains can record nothing, and would continue if the halt were lifted.
      expect(await record(mine!)).toBe(false);
      await expect(resume()).rejects.toMatchObject({ code: 'conflict', reason: 'not_ended' });
      expect(await ask(storage)).toMatchObject({ verified: true, halt: brokenOff.halt });
      await resume();
      expect(await record(mine!)).toBe(false);
    },
  );

  it('a halt retries a session that could not be ended at first', async () => {
    await makeSessions(storage, { count: 3 });
    // The writes of all sessions, of fewer and fewer, and of the first one alone.
    const on = refusing((count) => count > 1 && count < 8);
    expect(await haltAll({ ...service, storage: on }, BY, WHY)).toMatchObject({ verified: true });
    expect(log).toHaveLength(1);
  });

  it('a halt takes precedence over waiting writes, and does not overload the database', async () => {
    const [mine] = await makeSessions(storage, { count: 1 });
    let before = 0;
    const look = async (tx: Db): Promise<void> => {
      const halts = await tx.selectFrom('halts').select('halt_id').execute();
      if (halts.length === 0) before += 1;
    };
    const usual = Array.from({ length: 1000 }, () => storage.write(look));
    const { verified } = await haltBot(service, BY, mine!.bot_id, WHY);
    expect(verified).toBe(true);
    await Promise.all(usual);
    expect(before).toBeLessThan(500);
  });
});

/** SQL that prevents changes of a row, either silently or with an error. */
const KEEPING = {
  sqlite: (how: 'quietly' | 'loudly', id: string) =>
    `create trigger keep before update on bot_deployments when old.deployment_id = '${id}'
      begin select raise(${how === 'quietly' ? 'ignore' : "abort, 'kept'"}); end`,
  postgres: (how: 'quietly' | 'loudly', id: string) =>
    `create function keep() returns trigger language plpgsql as $$ begin
       if old.deployment_id = '${id}' then
         ${how === 'quietly' ? 'return null' : `raise exception 'kept' using errcode = '23514'`};
       end if;
       return new;
     end $$;
     create trigger keep before update on bot_deployments for each row execute function keep()`,
} as const;

describe.each(DATABASES)('halts on a %s with faulty writes', (kind) => {
  useDatabase(kind, newDatabase);

  it('a halt reports a deployment that is not halted because a write was lost', async () => {
    const [kept, mine] = await makeSessions(storage, { count: 2 });
    await database.execute(KEEPING[kind]('quietly', kept!.deployment_id));
    const report = await haltAll(service, BY, WHY);
    expect(report).toMatchObject({ verified: false, in_force: true });
    expect(faultsOf(report)).toEqual([
      [kept!.deployment_id, ['deployment_not_halted'], [true, true]],
    ]);
    expect(await statusOf(mine!)).toEqual(['halted', 'canceled', null, now]);
    // The halt is repeated after the database accepts changes again.
    await database.execute(`drop trigger keep ${kind === 'postgres' ? 'on bot_deployments' : ''}`);
    const again = await haltAll(service, BY, WHY);
    expect(again.verified).toBe(true);
    // The orders that the first attempt recorded.
    const { orders } = again.deployments.find((one) => one.deployment_id === kept!.deployment_id)!;
    expect(orders.map(({ order }) => order)).toEqual([3, 4]);
  });

  it('a halt ends all other deployments when one write is rejected', async () => {
    const sessions = await makeSessions(storage, { count: 20 });
    const kept = sessions[7]!;
    await database.execute(KEEPING[kind]('loudly', kept.deployment_id));
    const report = await haltAll(service, BY, WHY);
    expect(report.deployments).toHaveLength(20);
    expect(faultsOf(report)).toEqual([
      [
        kept.deployment_id,
        ['deployment_not_halted', 'task_not_ended', 'not_in_log', 'order_not_canceled'],
        [false, false],
      ],
    ]);
    const warning = `deployment ${kept.deployment_id} could not be halted`;
    expect(log).toEqual([warning, warning]);
    // Its rows are unchanged, but it can no longer record anything.
    expect(await statusOf(kept)).toEqual(['running', 'running', WORKER, null]);
    expect(await record(kept)).toBe(false);
  });

  it('the verification of a halt finds altered events and orders that work again', async () => {
    const sessions = await makeSessions(storage, { count: 3 });
    await haltAll(service, BY, WHY);
    const [altered, working, lifted] = sessions as [MadeSession, MadeSession, MadeSession];
    await database.execute(
      `update bot_events set payload = '{"order":9}'
        where kind = 'order.canceled' and run_id = '${altered.task_id}'`,
    );
    await database.execute(
      `update trading_sessions set state = '${JSON.stringify(STATE)}' where task_id = '${working.task_id}'`,
    );
    await database.execute(
      `update tasks set status = 'running', ended_at = null, worker_id = 'x' where task_id = '${lifted.task_id}'`,
    );
    const report = await haltAll(service, BY, WHY);
    expect(new Map(faultsOf(report).map(([id, ...rest]) => [id, rest]))).toEqual(
      new Map([
        [altered.deployment_id, [['order_not_canceled'], [false, false]]],
        [working.deployment_id, [['order_not_canceled'], [false, false]]],
        [lifted.deployment_id, [['task_not_ended'], [true, true]]],
      ]),
    );
  });
});

describe('halts on one PostgreSQL', () => {
  useDatabase('postgres', newDatabase);

  it('a halt waits for a slow database, and ends sessions of another server', async () => {
    const elsewhere = await openStorage(database.location);
    const [mine] = await makeSessions(elsewhere, { count: 1 });
    const { promise: isHeld, resolve: hold } = Promise.withResolvers<void>();
    const { promise: isDone, resolve: letGo } = Promise.withResolvers<void>();
    const slow = elsewhere.write(async () => {
      hold();
      await isDone;
    });
    await isHeld;
    const halting = haltBot(service, BY, 'bot-0', WHY);
    // Written before the halt gets its turn: what the halt ends is what it finds then.
    const before = elsewhere.write((tx) => recordBatch(tx, claimOf(mine!), now, batch));
    letGo();
    await slow;
    expect(await halting).toMatchObject({ verified: true, deployments: [mine!] });
    await before;
    const late = elsewhere.write((tx) =>
      recordBatch(tx, claimOf(mine!), now, { ...batch, number: 9 }),
    );
    expect(await late).toBe(false);
    expect((await toldOf(mine!)).at(-1)).toMatchObject(['run.ended', { status: 'canceled' }]);
    await elsewhere.close();
  });
});
