import { expect, test } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import type { MessagePeak, Peaks } from '../../../src/compliance/stress/peaks.ts';
import type { PassResult } from '../../../src/compliance/stress/pass.ts';
import { checkStaleness, createStalenessCheck } from '../../../src/compliance/tests/staleness.ts';
import { openStorage } from '../../../src/storage/storage.ts';
import { makeSessions } from '../../fleet/halts/sessions.ts';
import { newTables } from '../../storage/databases.ts';

const MADE = Date.UTC(2026, 6, 5);
const LOCK = { spec: 'a', engine: '1', limits: { max_order_qty: 5 } };
const reached = { class: 'out', window_s: 1, target: 20, offered: 22, achieved: 20 } as const;
const RESULT = {
  lock: LOCK,
  peaks: { window: { from: '', to: new Date(MADE).toISOString() } },
  passes: [
    {
      limits: 'lifted',
      reached: [{ ...reached, is_reached: true }],
      volume: [
        { measure: 'value', of: 'USD', window_s: 60, target: 8, achieved: 8, is_reached: true },
      ],
    },
  ] as unknown as PassResult[],
};
const live = (M: number, value = 0): Peaks => {
  const moment = { window_s: 1, peak_ts: 'T', instruments: [] } as const;
  const messages: MessagePeak[] = [{ class: 'out', M, mix: [], ...moment }];
  return {
    messages,
    volume: [{ measure: 'value', of: 'USD', M: value, ...moment, window_s: 60 }],
  };
};

test('a stress test becomes stale by a higher peak, a changed lock or its age', () => {
  expect(checkStaleness(RESULT, MADE + 1, live(10, 4), LOCK)).toEqual({
    stale: false,
    reasons: [],
  });
  expect(checkStaleness(RESULT, MADE + 1, live(11, 5), LOCK).reasons).toEqual([
    'live peak: 11 messages (out) in 1 s at T, more than half of the tested 20',
    'live peak: value of USD 5 in 60 s at T, more than half of the tested 8',
  ]);
  const moved = { ...LOCK, limits: { max_order_qty: 6 }, model: 'm' };
  expect(checkStaleness(RESULT, MADE + 1, live(1), moved).reasons).toEqual([
    'limits has changed since the test',
    'model has changed since the test',
  ]);
  const year = Date.UTC(2027, 6, 5);
  expect(checkStaleness(RESULT, year - 1, live(1), LOCK).stale).toBe(false);
  expect(checkStaleness(RESULT, year, live(1), LOCK).reasons).toEqual([
    'the test is twelve months old',
  ]);
  // Without a reached load, any live peak is too high.
  expect(checkStaleness({ ...RESULT, passes: [] }, MADE, live(1), LOCK).stale).toBe(true);
});

test('concurrent staleness checks share one read of a log, and a fifth pending log is rejected', async () => {
  const database = await newTables('sqlite');
  const storage = await openStorage(database.location);
  try {
    const bots = await makeSessions(storage, { count: 5 });
    const document = JSON.stringify(exampleDocument('bot', 10));
    await storage.write((tx) => tx.updateTable('bot_versions').set({ document }).execute());
    const result = { ...RESULT, schema: 'stress/1', scope: 'bot' };
    const ask = ({ bot_id }: { readonly bot_id: string }) =>
      createStalenessCheck(
        { storage, clock: () => MADE },
        { bot_id, current_version: 1 },
      )({
        ended_at: MADE,
        result,
      }).then(
        ({ stale }) => stale,
        ({ code }: { readonly code: string }) => code,
      );
    expect(await Promise.all([bots[0]!, ...bots].map(ask))).toEqual([
      ...Array.from({ length: 5 }, () => true),
      'overloaded',
    ]);
    expect(await ask(bots[4]!)).toBe(true);
  } finally {
    await storage.close();
    await database.remove();
  }
});
