import { afterAll, beforeAll, expect, test } from 'vitest';
import { appendEvents } from '../../../src/events/append.ts';
import { readTrades, type SessionTrade } from '../../../src/fleet/tasks/booked-trades.ts';
import { findSession } from '../../../src/fleet/tasks/find-session.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { newSqliteTables, type TestDatabase } from '../../storage/databases.ts';
import { makeSessions, STATE } from '../halts/sessions.ts';

const NOW = Date.parse('2026-01-03T00:00:00Z');
const RISK = {} as NonNullable<typeof STATE.carry>['risk'];
/** Closes that differ from every fill, which later fees in units must not use. */
const AT_CLOSE = { ...STATE, carry: { marks: { SPX: 500, DAX: 700 }, risk: RISK } };

let database: TestDatabase;
let storage: Storage;

beforeAll(async () => {
  database = await newSqliteTables();
  storage = await openStorage(database.location);
});
afterAll(async () => {
  await storage.close();
  await database.remove();
});

type Side = 'buy' | 'sell';
const time = new Date(NOW).toISOString();
const fill = (order: number, symbol: string, side: Side, quantity: number, price: number) => [
  { kind: 'order.submitted', time, order, symbol, side },
  { kind: 'order.filled', time, order, symbol, side, quantity, price, fee: 1 },
];
/** Steps of a session: each adds events after the trades were read. */
const STEPS = [
  [],
  fill(1, 'SPX', 'buy', 2, 100),
  fill(2, 'SPX', 'buy', 1, 130),
  [{ kind: 'order.fee', time, order: 2, symbol: 'SPX', quantity: -0.5, fee: 3 }],
  fill(3, 'DAX', 'sell', 4, 50),
  [...fill(4, 'SPX', 'sell', 2.5, 150), ...fill(5, 'SPX', 'sell', 1, 140)],
  [{ kind: 'order.corrected', time, order: 3, symbol: 'DAX', quantity: 1, price: 50, fee: 0 }],
  fill(6, 'DAX', 'buy', 3, 40),
];

test('trades that are booked step by step equal those that are booked at once', async () => {
  const [made] = await makeSessions(storage, { count: 1 });
  const { bot_id, task_id: run_id } = made!;
  const found = { ...(await findSession(storage.read, bot_id, run_id)), state: AT_CLOSE };
  const counts: number[] = [];
  for (const step of STEPS) {
    const events = step.map(({ kind, ...payload }) => ({
      kind,
      version: 1,
      occurred_at: NOW,
      run_id,
      payload: { kind, ...payload },
    }));
    await storage.write((tx) => appendEvents(tx, bot_id, NOW, events));
    const reads = [readTrades(storage.read, '', found), readTrades(storage.read, '', found)];
    const [trades, again] = await Promise.all(reads);
    // A transaction has no trades of earlier reads.
    const whole = await storage.write((tx): Promise<readonly SessionTrade[]> =>
      readTrades(tx, '', found),
    );
    expect(trades).toEqual(whole);
    expect(again).toEqual(whole);
    counts.push(whole.length);
  }
  expect(counts).toEqual([0, 1, 1, 1, 2, 3, 3, 3]);
});
