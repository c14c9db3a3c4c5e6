import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { appendEvents, appendSessionEvents } from '../../src/events/append.ts';
import { hashOf, type NewEvent } from '../../src/events/event.ts';
import { readEvents, readHead, readRows } from '../../src/events/read-events.ts';
import type { SessionState, WorkingOrder } from '../../src/events/session-state.ts';
import { stateAt } from '../../src/events/snapshot.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { isAtLength, runs } from '../length.ts';
import { mainlyOn, newDatabase, type TestDatabase } from '../storage/databases.ts';
import { addBot, CREATED, tick } from './bots.ts';

const NOW = Date.parse('2026-02-03T04:05:06.007Z');
const MINUTE = 60_000;

/** Bars, maybe an order, and maybe the state after them. */
interface SessionStep {
  readonly run_id: 'a' | 'b';
  readonly hasState: boolean;
  readonly order: 'none' | 'submitted' | 'filled';
  readonly close: number;
  readonly isTrailing: boolean;
  /** Time since the previous step. */
  readonly minutes: number;
  /** Whether the step is appended in a write of its own. */
  readonly isCommitted: boolean;
}

const price = fc.double({ min: 1e-3, max: 1e6, noNaN: true });

const steps = fc.array(
  fc.record<SessionStep>({
    run_id: fc.constantFrom('a', 'a', 'b'),
    hasState: fc.integer({ min: 0, max: 5 }).map((n) => n > 0),
    order: fc.constantFrom('none', 'none', 'none', 'none', 'submitted', 'filled'),
    close: fc.oneof(price, fc.constantFrom(1, 100, 100.25, 0.1 + 0.2)),
    isTrailing: fc.boolean(),
    minutes: fc.constantFrom(1, 397),
    isCommitted: fc.boolean(),
  }),
  { minLength: 1, maxLength: 40 },
);

interface Account {
  readonly minute: number;
  readonly state: SessionState;
}

const BEGIN: Account = {
  minute: 0,
  state: {
    status: 'running',
    time: null,
    seq: 0,
    cash: 100_000,
    equity: 100_000,
    positions: {},
    working: [],
  },
};

/** The account after a step, in the shape that the engine records. */
function next(
  { minute, state }: Account,
  { order, close, isTrailing, minutes }: SessionStep,
): Account {
  const at = NOW - (NOW % MINUTE) + (minute + minutes) * MINUTE;
  const time = new Date(at).toISOString();
  const held = (state.positions['SPX'] ?? 0) + (order === 'filled' ? 1.5 : 0);
  const cash = state.cash - (order === 'filled' ? 1.5 * close : 0);
  const equity = cash + held * close;
  const peak = Math.max(equity, state.carry?.risk.peak_equity ?? 0);
  const stop: WorkingOrder = {
    order: 1,
    symbol: 'SPX',
    side: 'sell',
    type: 'trailing_stop',
    time_in_force: 'gtc',
    quantity: 1,
    stop: close * 0.95,
    filled: 0,
    triggered: false,
  };
  const day = time.slice(0, 10);
  const before = state.carry?.risk;
  const day_start_equity = before?.day === day ? before.day_start_equity : state.equity;
  const risk = { peak_equity: peak, day_start_equity, day };
  return {
    minute: minute + minutes,
    state: {
      status: 'running',
      time,
      seq: state.seq + (order === 'none' ? 0 : 1),
      cash,
      equity,
      positions: held === 0 ? {} : { SPX: held },
      working: isTrailing ? [stop] : [],
      carry: { marks: held === 0 ? {} : { SPX: close }, risk },
    },
  };
}

function eventsOf(step: SessionStep, { state, minute }: Account): NewEvent[] {
  const { run_id, hasState, order, close } = step;
  const run = { version: 1, run_id, occurred_at: Date.parse(state.time!) };
  const bars = {
    time: state.time,
    bars: { SPX: [close, close * 1.01, close / 1.01, close, minute] },
  };
  return [
    { ...run, kind: 'data.bars', payload: bars },
    ...(order === 'none'
      ? []
      : [{ ...run, kind: `order.${order}`, payload: { order: state.seq, symbol: 'SPX' } }]),
    ...(hasState
      ? [{ ...run, kind: 'session.state', payload: { deployment_id: `of ${run_id}`, ...state } }]
      : []),
  ];
}

/** Events of two sessions, in the batches in which they are written. */
function batchesOf(all: readonly SessionStep[]): NewEvent[][] {
  const accounts = { a: BEGIN, b: BEGIN };
  const first = (run_id: string): NewEvent => ({
    kind: 'session.state',
    version: 1,
    run_id,
    occurred_at: NOW,
    payload: { deployment_id: `of ${run_id}`, ...BEGIN.state },
  });
  const batches: NewEvent[][] = [[first('a')], [first('b')], []];
  for (const step of all) {
    const account = next(accounts[step.run_id], step);
    accounts[step.run_id] = account;
    if (step.isCommitted) batches.push([]);
    batches.at(-1)!.push(...eventsOf(step, account));
  }
  return batches;
}

describe.each(mainlyOn('sqlite'))('packed bars on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let bots = 0;

  beforeAll(async () => {
    database = await newDatabase(kind);
    storage = await openStorage(database.location);
  });

  afterAll(async () => {
    await storage.close();
    await database.remove();
  });

  const newBot = async (): Promise<string> => {
    bots += 1;
    const bot = `bot ${bots}`;
    await storage.write(async (tx) => {
      await addBot(tx, bot);
      await appendEvents(tx, bot, NOW, [CREATED]);
    });
    return bot;
  };
  const record = async (bot: string, batches: readonly NewEvent[][]): Promise<void> => {
    for (const [n, batch] of batches.entries()) {
      await storage.write((tx) => appendSessionEvents(tx, bot, NOW + n, batch));
    }
  };
  /** Bytes of the tables of events as stored, without their indexes in PostgreSQL. */
  const eventBytes = async (): Promise<number> => {
    const query =
      kind === 'sqlite'
        ? sql<{ bytes: number }>`select sum(pgsize) as bytes from dbstat
            where name in ('bot_events', 'packed_bars')`
        : sql<{ bytes: number }>`select pg_relation_size('bot_events')
            + pg_relation_size('packed_bars') as bytes`;
    return (await query.execute(storage.read)).rows[0]!.bytes;
  };
  const countPacked = async (): Promise<number> => {
    const { count } = await storage.read
      .selectFrom('packed_bars')
      .select(({ fn }) => fn.countAll().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  };
  /** A session of one-minute bars that holds a position and trades rarely. */
  const quiet = (count: number): SessionStep[] =>
    Array.from({ length: count }, (_, n) => ({
      run_id: 'a',
      hasState: true,
      order: n % 200 === 0 ? 'filled' : 'none',
      close: 4321.37 + Math.round(500 * Math.sin(n / 9)) / 100,
      isTrailing: false,
      minutes: 1,
      isCommitted: true,
    }));

  test('are read as the events that were appended, with the same state at each event', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const [packed, plain] = [await newBot(), await newBot()];
        const batches = batchesOf(all);
        await record(packed, batches);
        for (const [n, batch] of batches.entries()) {
          await storage.write((tx) => appendEvents(tx, plain, NOW + n, batch));
        }
        const whole = { after_seq: 0, limit: 1000 };
        const [a, b] = [
          await readEvents(storage.read, packed, whole),
          await readEvents(storage.read, plain, whole),
        ];
        const content = ({
          bot_id: _b,
          event_id: _e,
          prev_hash: _p,
          hash: _h,
          ...rest
        }: object & {
          bot_id: string;
          event_id: string;
          prev_hash: string;
          hash: string;
        }): object => rest;
        expect(a.events.map(content)).toEqual(b.events.map(content));
        expect(await verifyEvents(storage.read, packed)).toMatchObject({ fault: undefined });
        for (let seq = 1; seq <= a.head.seq; seq += 3) {
          const [one, other] = [
            await stateAt(storage.read, packed, { seq }),
            await stateAt(storage.read, plain, { seq }),
          ];
          expect(one.state_hash).toBe(other.state_hash);
        }
        expect((await readHead(storage.read, packed)).recorded_at).toBe(
          (await readHead(storage.read, plain)).recorded_at,
        );
      }),
      { numRuns: runs(12) },
    );
  });

  test('are found by page, range, kind and run, and in both directions', async () => {
    const bot = await newBot();
    await record(
      bot,
      batchesOf(quiet(450).map((one, n) => ({ ...one, run_id: n % 3 ? 'a' : 'b' }))),
    );
    const { events } = await readEvents(storage.read, bot, { after_seq: 0, limit: 10_000 });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, n) => n + 1));
    for (const kinds of [[], ['data.bars'], ['session.state'], ['order.filled', 'session.state']]) {
      for (const run_id of [undefined]) {
        for (const last of [false, true]) {
          for (const [after_seq, until_seq, limit] of [
            [0, 10_000, 100],
            [13, 500, 37],
            [14, 501, 1000],
            [301, 302, 5],
            [302, 303, 5],
          ] as const) {
            const request = { after_seq, until_seq, limit, kinds, run_id, last };
            const wanted = events.filter(
              ({ seq, kind: one }) =>
                seq > after_seq && seq <= until_seq && (kinds.length === 0 || kinds.includes(one)),
            );
            expect((await readEvents(storage.read, bot, request)).events).toEqual(
              last ? wanted.slice(-limit) : wanted.slice(0, limit),
            );
          }
        }
      }
    }
  });

  test.runIf(isAtLength)(
    'take at most 160 bytes each, and bars of two bots are stored once',
    async () => {
      const before = await countPacked();
      const bytesBefore = await eventBytes();
      const [one, other] = [await newBot(), await newBot()];
      const batches = batchesOf(quiet(1000));
      await record(one, batches);
      await record(other, batches);
      expect((await countPacked()) - before).toBe(2000);
      expect(((await eventBytes()) - bytesBefore) / 2000).toBeLessThanOrEqual(160);
      const { rows } = await readRows(storage.read, one, { after_seq: 0, limit: 10_000 });
      for (const row of rows) expect(row.hash).toBe(hashOf(row));
    },
  );

  test.each([
    ['the difference', `update packed_bars set state = '4=1' where seq = 100`],
    ['the bars', `update stored_bars set payload = replace(payload, '4', '5')`],
    ['the base', `update bot_events set payload = replace(payload, 'of a', 'of b')`],
    ['the recording time', `update packed_bars set recorded_at = recorded_at + 1 where seq = 100`],
    ['the row', `delete from packed_bars where seq = 100`],
    ['the stored bars', `delete from stored_bars`],
  ])('do not verify after a change of %s', async (_what, change) => {
    const bot = await newBot();
    await record(bot, batchesOf(quiet(60)));
    await database.execute(change);
    expect((await verifyEvents(storage.read, bot)).fault).toBeDefined();
    await database.execute('delete from packed_bars; delete from stored_bars');
  });

  test('survive the rollback of a write that contains them', async () => {
    const bot = await newBot();
    const batches = batchesOf(quiet(40));
    for (const [n, batch] of batches.entries()) {
      const failed = storage.write(async (tx) => {
        await appendSessionEvents(tx, bot, NOW, batch);
        if (n % 3 === 0) throw new RangeError('no');
      });
      if (n % 3 === 0) await expect(failed).rejects.toThrow('no');
      else await failed;
      if (n % 3 === 0) await storage.write((tx) => appendSessionEvents(tx, bot, NOW, batch));
    }
    expect(await verifyEvents(storage.read, bot)).toMatchObject({ fault: undefined });
  });

  test('are read correctly after the database has aborted a write that stored some', async () => {
    const both = [await newBot(), await newBot()];
    const run = { version: 1, run_id: 'a', occurred_at: NOW };
    const begin = batchesOf([])[0]!;
    const [first, second] = [quiet(2)[1]!, { ...quiet(1)[0]!, close: 5 }];
    const account = next(BEGIN, first);
    const all = [...eventsOf(first, account), ...eventsOf(second, next(account, second))];
    for (const bot of both) {
      await storage.write((tx) => appendEvents(tx, bot, NOW, begin));
      const last = `bot_id = '${bot}' and seq = 2`;
      await database.execute(`insert into bot_events
        select bot_id, 7, event_id, version, run_id, kind, occurred_at, recorded_at, causation_id,
          payload, prev_hash, hash from bot_events where ${last}`);
      await expect(storage.write((tx) => appendSessionEvents(tx, bot, NOW, all))).rejects.toThrow(
        'the database cannot be used',
      );
      await database.execute(`delete from bot_events where bot_id = '${bot}' and seq = 7`);
    }
    for (const bot of both) {
      await storage.write((tx) => appendSessionEvents(tx, bot, NOW, all));
      await storage.write((tx) => appendSessionEvents(tx, bot, NOW, [{ ...run, ...tick(1) }]));
      expect(await verifyEvents(storage.read, bot)).toMatchObject({ fault: undefined });
    }
  });

  test('fail to verify if stored in place of other events', async () => {
    const [packed, plain] = [await newBot(), await newBot()];
    const batches = batchesOf(quiet(2));
    await record(packed, batches);
    await storage.write((tx) => appendEvents(tx, plain, NOW, batches.flat()));
    await database.execute(`insert into bot_numbers
        select max(bot_no) + 1, '${plain}' from bot_numbers;
      insert into packed_bars (seq, recorded_at, bot_no, base, bars, hash, state)
        select seq, recorded_at, (select max(bot_no) from bot_numbers), base, bars, hash, state
        from packed_bars join bot_numbers using (bot_no) where bot_id = '${packed}'`);
    expect((await verifyEvents(storage.read, plain)).fault).toBeDefined();
  });
});
