import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import {
  readHistory,
  sixMonthsBefore,
  type History,
} from '../../../src/compliance/stress/history.ts';
import { appendEvents } from '../../../src/events/append.ts';
import { proveIsolation, takeFingerprint } from '../../../src/compliance/stress/isolation.ts';
import { openStorage, type Storage } from '../../../src/storage/storage.ts';
import { CREATED } from '../../events/bots.ts';
import { makeSessions, type MadeSession } from '../../fleet/halts/sessions.ts';
import { mainlyOn, newTables, type TestDatabase } from '../../storage/databases.ts';

const BEGUN = CREATED.occurred_at;
const NOW = BEGUN + 86_400_000;

function message({ task_id }: MadeSession, kind: string, after: number, payload = {}) {
  return { kind, version: 1, run_id: task_id, occurred_at: BEGUN + after, payload };
}

const outIn = (history: History, window_s: number) =>
  history.production.messages.find((one) => one.class === 'out' && one.window_s === window_s);

describe.each(mainlyOn('sqlite'))('production history on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let one: MadeSession;
  let two: MadeSession;

  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    [one, two] = (await makeSessions(storage, { count: 2 })) as [MadeSession, MadeSession];
    const document = JSON.stringify(exampleDocument('bot-0', 10));
    await storage.write((tx) => tx.updateTable('bot_versions').set({ document }).execute());
  });

  afterEach(async () => {
    await storage.close();
    await database.remove();
  });

  const produce = (session: MadeSession) =>
    storage.write((tx) =>
      tx
        .updateTable('bot_deployments')
        .set({ target: 'k8s' })
        .where('task_id', '=', session.task_id)
        .execute(),
    );

  test('counts only production runs in sliding windows, and the messages of all bots of a firm together', async () => {
    await produce(one);
    await produce(two);
    const { bot_id } = one;
    const order = (session: MadeSession, after: number) =>
      message(session, 'order.submitted', after, { order: 1, symbol: 'SPX' });
    await storage.write(async (tx) => {
      await appendEvents(tx, bot_id, BEGUN + 10_000, [
        // Three orders within 0.9 s that lie in two calendar seconds.
        ...[600, 800, 1500].map((after) => order(one, 3000 + after)),
        message(one, 'order.pending_cancel', 90_000, { order: 1, symbol: 'SPX' }),
        message(one, 'venue.report', 4000, { order: 1, status: 'filled' }),
        message(one, 'order.filled', 4000, { symbol: 'SPX', quantity: 2, price: 50 }),
        message(one, 'order.filled', 4999, { symbol: 'SPX', quantity: 1, price: 50 }),
        message(one, 'order.filled', 5000, { symbol: 'NDX', quantity: 3, price: 10 }),
        message(one, 'data.bars', 5000, { time: '', bars: { SPX: [], NDX: [] } }),
        message(one, 'data.gap', 6000),
        // Belongs to no production run.
        { ...order(one, 3700), run_id: undefined },
      ]);
      // As many orders in a second, at a time when the first bot sends none.
      await appendEvents(tx, two.bot_id, BEGUN + 10_000, [
        order(two, 3700),
        order(two, 8000),
        order(two, 8000),
        order(two, 8000),
      ]);
    });

    const own = await readHistory(storage, { bot_id, asOf: NOW, eventsAtOnce: 3 });
    expect(outIn(own, 1)).toEqual({
      class: 'out',
      window_s: 1,
      M: 3,
      peak_ts: new Date(BEGUN + 3600).toISOString(),
      instruments: ['SPX'],
      mix: [{ kind: 'order.submitted', instrument: 'SPX', count: 3 }],
    });
    expect(outIn(own, 86_400)?.mix).toEqual([
      { kind: 'order.submitted', instrument: 'SPX', count: 3 },
      { kind: 'order.pending_cancel', instrument: 'SPX', count: 1 },
    ]);
    const { messages, volume } = own.production;
    const of = (name: string) => messages.filter((peak) => peak.class === name).map(({ M }) => M);
    expect(of('in_order')).toEqual([1, 1, 1]);
    expect(of('in_md')).toEqual([2, 2, 2]);
    const volumes = volume.map(({ measure, of: unit, window_s, M }) => [
      measure,
      unit,
      window_s,
      M,
    ]);
    expect(volumes).toEqual([
      ...[
        [1, 2],
        [60, 3],
        [86_400, 3],
      ].map((row) => ['fills', null, ...row]),
      ...[
        [1, 150],
        [60, 180],
        [86_400, 180],
      ].map((row) => ['value', 'USD', ...row]),
      ...[
        [1, 3],
        [60, 3],
        [86_400, 3],
      ].map((row) => ['quantity', 'SPX', ...row]),
      ...[
        [1, 3],
        [60, 3],
        [86_400, 3],
      ].map((row) => ['quantity', 'NDX', ...row]),
    ]);
    expect(own.gaps).toMatchObject([{ why: 'data_gap', count: 1 }]);
    expect(own).toMatchObject({ scope: 'bot', coverage_days: 2 });
    expect(await readHistory(storage, { bot_id, asOf: NOW })).toEqual(own);

    await expect(readHistory(storage, { asOf: NOW, mostRows: 3 })).rejects.toMatchObject({
      code: 'conflict',
      reason: 'too_much_history',
    });
    const firm = await readHistory(storage, { asOf: NOW });
    expect(firm.scope).toBe('firm');
    // The first peak has 3 + 1 orders, the second 0 + 3.
    expect(outIn(firm, 1)?.M).toBe(4);
    expect(outIn(firm, 60)?.M).toBe(7);
  });

  test('is read without changes to production, and the isolation proof shows later changes', async () => {
    await produce(one);
    const { bot_id } = one;
    const before = await takeFingerprint(storage, undefined, NOW);
    expect(before.summary).toMatchObject({ bots: 2, deployments: 1 });
    const order = message(one, 'order.submitted', 1, { symbol: 'SPX' });
    await storage.write((tx) => appendEvents(tx, bot_id, NOW, [order]));
    const after = await takeFingerprint(storage, undefined, NOW + 1);
    expect(await proveIsolation(storage, 'a-test', before, after)).toMatchObject({
      before: { at: new Date(NOW).toISOString() },
      after: { at: new Date(NOW + 1).toISOString() },
      logs_kept: true,
      config_unchanged: true,
      orders_of_test: 0,
    });
    const fewer = { ...before, summary: { ...before.summary, config_hash: '' }, deployments: [] };
    expect(await proveIsolation(storage, 'a-test', fewer, after)).toMatchObject({
      config_unchanged: false,
      changed: [expect.stringMatching(/^\S+ started deployment [\w-]+$/)],
    });
    expect(await proveIsolation(storage, 'a-test', after, fewer)).toMatchObject({
      changed: [expect.stringMatching(/^deployment [\w-]+ ended$/)],
    });
    // Simulates a test that traded in production.
    await storage.write((tx) => tx.updateTable('bot_versions').set({ hash: 'x' }).execute());
    await storage.write((tx) => tx.updateTable('bot_events').set({ hash: 'x' }).execute());
    const spoiled = await takeFingerprint(storage, undefined, NOW + 2);
    expect(await proveIsolation(storage, one.task_id, before, spoiled)).toMatchObject({
      logs_kept: false,
      config_unchanged: false,
      changed: ['an unknown change, of which the records have no author'],
      orders_of_test: 1,
    });
  });

  test('reports peaks of paper sessions separately from production', async () => {
    const { bot_id } = one;
    const events = [1, 2].map((after) => message(one, 'order.submitted', after, { symbol: 'SPX' }));
    await storage.write((tx) => appendEvents(tx, bot_id, BEGUN + 1000, events));
    const history = await readHistory(storage, { bot_id, asOf: NOW });
    expect(outIn(history, 1)?.M).toBe(0);
    expect(history).toMatchObject({ since: null, coverage_days: 0 });
    expect(history.paper.messages[0]).toMatchObject({ class: 'out', window_s: 1, M: 2 });
    // Events older than six months do not count.
    const later = await readHistory(storage, { bot_id, asOf: BEGUN + 190 * 86_400_000 });
    expect(later.paper.messages[0]?.M).toBe(0);
  });
});

test('six months before a day that the month lacks is the last day of that month', () => {
  expect(new Date(sixMonthsBefore(Date.UTC(2026, 7, 31, 5))).toISOString()).toBe(
    '2026-02-28T05:00:00.000Z',
  );
  expect(new Date(sixMonthsBefore(Date.UTC(2026, 10, 22))).toISOString()).toBe(
    '2026-05-22T00:00:00.000Z',
  );
});
