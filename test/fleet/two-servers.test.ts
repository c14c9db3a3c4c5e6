/** Two servers that write to bots on one PostgreSQL database at the same time. */
import pg from 'pg';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readEvents } from '../../src/events/read-events.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { haltAll } from '../../src/fleet/halts/halt.ts';
import { createBot } from '../../src/fleet/registry/bots.ts';
import { startPaper } from '../../src/fleet/tasks/paper.ts';
import type { Claim } from '../../src/fleet/tasks/claim.ts';
import { botWrite, recordBatch } from '../../src/fleet/tasks/session-record.ts';
import { readInForce, readSupervision } from '../../src/fleet/thresholds/read-supervision.ts';
import { setThreshold } from '../../src/fleet/thresholds/thresholds.ts';
import { appendAudit, readAudit, verifyWholeAudit } from '../../src/identity/audit.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import type { TaskBatch } from '../../src/trading/host/threads/session-work.ts';
import { newTables, type TestDatabase } from '../storage/databases.ts';
import { whenBlocked } from '../storage/when-blocked.ts';
import { makeSessions, STATE, WORKER, type MadeSession } from './halts/sessions.ts';
import { fillCatalogue, tradingDocument } from './tasks/market.ts';
import { isAtLength } from '../length.ts';

const BY = 'administrator:ada';
const NOW = Date.UTC(2026, 0, 3);
const MINUTE = 60_000;
/** Batches that a session of `makeSessions` has recorded. */
const BEFORE = 7;

let database: TestDatabase;
let servers: readonly [Storage, Storage];
beforeEach(async () => {
  database = await newTables('postgres');
  servers = [await openStorage(database.location), await openStorage(database.location)];
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const server of servers) await server.close();
  await database.remove();
});

const either = (turn: number): Storage => servers[turn % 2]!;

/** The next batch of a session, with bars at these minutes, which sessions of other bots record too. */
function batchOf(number: number, minutes: readonly number[]): TaskBatch {
  const times = minutes.map((minute) => NOW + minute * MINUTE);
  const events = times.map((at) => {
    const time = new Date(at).toISOString();
    return {
      kind: 'data.bars',
      occurred_at: at,
      payload: { time, bars: { SPX: [1, 2, 1, 2, 0] } },
    };
  });
  const state = { ...STATE, time: new Date(times.at(-1)!).toISOString(), equity: number };
  return { number, events, state, steps: 20 + number, total: null };
}

const claimOf = (session: MadeSession): Claim => {
  const place = { ...session, kind: 'paper', version: 1, attempts: 1, input: '{}' } as const;
  return { ...place, worker_id: WORKER, traceparent: null };
};

function record(on: Storage, session: MadeSession, batch: TaskBatch): Promise<boolean> {
  const claim = claimOf(session);
  const options = botWrite(claim, batch.events);
  return on.write((tx) => recordBatch(tx, claim, NOW, batch), options);
}

/** Records batches in one write, which waits after the first until `next` resolves. */
function recordSlowly(
  on: Storage,
  session: MadeSession,
  [first, ...rest]: readonly [TaskBatch, ...TaskBatch[]],
  next: () => Promise<unknown>,
): Promise<void> {
  const claim = claimOf(session);
  const events = [first, ...rest].flatMap((batch) => batch.events);
  return on.write(
    async (tx) => {
      expect(await recordBatch(tx, claim, NOW, first)).toBe(true);
      await next();
      for (const batch of rest) expect(await recordBatch(tx, claim, NOW, batch)).toBe(true);
    },
    botWrite(claim, events),
  );
}

/** Codes of the errors that PostgreSQL has answered with, such as those of deadlocks. */
function watchErrors(): readonly string[] {
  const codes: string[] = [];
  const { prototype } = pg.Client;
  const query = Reflect.get(prototype, 'query') as (...args: unknown[]) => unknown;
  vi.spyOn(prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const result = Reflect.apply(query, this, args) as Promise<unknown>;
    result.catch?.((error: pg.DatabaseError) => void codes.push(String(error.code)));
    return result;
  });
  return codes;
}

async function verifyLogs(sessions: readonly MadeSession[]): Promise<void> {
  for (const { bot_id } of sessions) {
    expect(await verifyEvents(servers[0].read, bot_id)).toMatchObject({ fault: undefined });
  }
}

async function seqOf({ bot_id }: MadeSession): Promise<number> {
  const { head } = await readEvents(servers[0].read, bot_id, { after_seq: 0, limit: 1 });
  return head.seq;
}

test('batches that two servers record for the same bots form one chain each, without a gap or a copy', async () => {
  const sessions = await makeSessions(servers[0], { count: 6 });
  const errors = watchErrors();
  for (let k = 1; k <= 8; k += 1) {
    const both = [...servers, ...servers].flatMap((server) =>
      sessions.map((session) => record(server, session, batchOf(BEFORE + k, [2 * k, 2 * k + 1]))),
    );
    expect(new Set(await Promise.all(both))).toEqual(new Set([true]));
  }
  expect(errors).toEqual([]);
  await verifyLogs(sessions);
  for (const { bot_id } of sessions) {
    const range = { after_seq: 0, limit: 100, kinds: ['data.bars'] };
    const { events } = await readEvents(servers[1].read, bot_id, range);
    const times = Array.from({ length: 16 }, (_, i) => NOW + (i + 2) * MINUTE);
    expect(events.map(({ occurred_at }) => occurred_at)).toEqual(times);
  }
});

test('after a halt of one server is acknowledged, neither server records a batch', async () => {
  const sessions = await makeSessions(servers[0], { count: 6 });
  const service = { storage: servers[0], clock: () => NOW, wake() {}, release() {}, log: console };
  let isHalted = false;
  const late: boolean[] = [];
  const trade = async (session: MadeSession, server: Storage): Promise<void> => {
    for (let k = 1; ; k += 1) {
      const beganAfter = isHalted;
      const isRecorded = await record(server, session, batchOf(BEFORE + k, [k]));
      if (beganAfter) late.push(isRecorded);
      if (!isRecorded) return;
    }
  };
  const trading = sessions.map((session, i) => trade(session, either(i)));
  while ((await seqOf(sessions[0]!)) < 15);
  const report = await haltAll(service, BY, 'a test');
  isHalted = true;
  expect(report).toMatchObject({ verified: true, deployments: { length: 6 } });
  const heads = await Promise.all(sessions.map(seqOf));
  await Promise.all(trading);
  for (const [i, session] of sessions.entries())
    late.push(await record(either(i), session, batchOf(99, [99])));
  expect(late).not.toContain(true);
  expect(await Promise.all(sessions.map(seqOf))).toEqual(heads);
  await verifyLogs(sessions);
});

test('bots that record the same bars in opposite orders do not block each other', async () => {
  const sessions = await makeSessions(servers[0], { count: 2 });
  // Each bot gets its number with its first bars.
  for (const session of sessions) await record(servers[0], session, batchOf(BEFORE + 1, [3]));
  const errors = watchErrors();
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const orders = [
    [1, 2],
    [2, 1],
  ] as const;
  const recorded = orders.map((minutes, i) => {
    const [first, second] = minutes.map((minute, k) => batchOf(BEFORE + 2 + k, [minute]));
    return recordSlowly(servers[i]!, sessions[i]!, [first!, second!], () => {
      begun[i]!.resolve();
      return Promise.race([begun[1 - i]!.promise, whenBlocked(database)]);
    });
  });
  await Promise.all(recorded);
  expect(errors).toEqual([]);
  await verifyLogs(sessions);
  const { read } = servers[0];
  expect(await read.selectFrom('stored_bars').select('digest').execute()).toHaveLength(3);
});

test.runIf(isAtLength)('bots get different numbers from two servers at the same time', async () => {
  const sessions = await makeSessions(servers[0], { count: 2 });
  const errors = watchErrors();
  const isFirst = Promise.withResolvers<void>();
  const first = recordSlowly(servers[0], sessions[0]!, [batchOf(BEFORE + 1, [1])], () => {
    isFirst.resolve();
    return whenBlocked(database);
  });
  await isFirst.promise;
  await Promise.all([first, record(servers[1], sessions[1]!, batchOf(BEFORE + 1, [2]))]);
  expect(errors).toEqual([]);
  const numbers = await servers[0].read.selectFrom('bot_numbers').select('bot_no').execute();
  expect(new Set(numbers.map(({ bot_no }) => bot_no))).toEqual(new Set([1, 2]));
});

test.runIf(isAtLength)(
  '200 mixed transactions of two servers neither block each other nor fail',
  async () => {
    const sessions = await makeSessions(servers[0], { count: 24 });
    const errors = watchErrors();
    const about = { actor: 'server', action: 'test' } as const;
    /** Batches of each session so far, which are recorded in order. */
    const batches = new Map<MadeSession, Promise<boolean>[]>();
    const work = Array.from({ length: 200 }, async (_, i) => {
      const server = either(Math.floor(i / 3));
      const audit = (options: object): Promise<void> =>
        server.write((tx) => appendAudit(tx, NOW, { ...about, target: `n:${i}` }), options);
      if (i % 10 === 7) return audit(i % 20 === 7 ? {} : { urgent: true });
      if (i % 10 === 9) return audit({ scope: `installation:${i % 3}` });
      const session = sessions[(i * 7) % sessions.length]!;
      const earlier = batches.get(session) ?? [];
      // Bars that others record too, in another order.
      const minutes = [i % 5, (i * 3) % 7, (i * 11) % 4].map((minute) => minute + 1);
      const batch = batchOf(BEFORE + 1 + earlier.length, minutes);
      const recorded = Promise.resolve(earlier.at(-1)).then(() => record(server, session, batch));
      batches.set(session, [...earlier, recorded]);
      expect(await recorded).toBe(true);
    });
    await Promise.all(work);
    expect(errors).toEqual([]);
    await verifyLogs(sessions);
    const { read } = servers[0];
    const { last, fault } = await verifyWholeAudit((after) => readAudit(read, after, 64));
    expect(fault).toBeUndefined();
    expect(last.seq).toBe(40);
  },
);

test('sessions that two servers start at the same time share the limit of the firm', async () => {
  const catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-two-servers-'));
  try {
    await fillCatalogue(catalogueDir, 1);
    const service = { storage: servers[0], clock: Date.now, catalogueDir };
    const limits = { max_gross_exposure: 4 };
    const firm = { level: 'firm', subject: 'firm', currency: 'USD', rationale: 'a test' } as const;
    await setThreshold(service, BY, { ...firm, limits });
    const slugs = ['a', 'b', 'c', 'd', 'e'];
    for (const slug of slugs) {
      const made = tradingDocument(slug, 'sma_crossover', { fast: 1, slow: 2 });
      await createBot(service, BY, { document: made });
    }
    const started = await Promise.all(
      slugs.map((slug, i) => startPaper({ ...service, storage: either(i) }, BY, slug, {})),
    );
    const { read } = servers[1];
    const inForce = await readInForce(read, Date.now());
    const shares = await Promise.all(
      started.map(async ({ task_id }) => {
        const { thresholds } = await readSupervision(read, task_id, inForce);
        return thresholds.max_gross_exposure?.value;
      }),
    );
    expect(shares).toEqual(slugs.map(() => 4 / slugs.length));
  } finally {
    await rm(catalogueDir, { recursive: true });
  }
});
