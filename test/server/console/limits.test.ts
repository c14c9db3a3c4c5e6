import { expect, test } from 'vitest';
import type { BotDetail } from '../../../src/api/bots.ts';
import { readLimits } from '../../../src/server/console/bot-limits.ts';
import { describeLimits } from '../../../src/server/console/client/describe-limits.ts';

const working = [
  { symbol: 'A', side: 'buy', quantity: 3, filled: 1, limit: 9 },
  { symbol: 'C', side: 'sell', quantity: 1, filled: 0 },
];
const session = {
  equity: 90,
  positions: { A: 2, B: -1 },
  working,
  messages: 2,
  carry: { marks: { C: 5 }, risk: { peak_equity: 100, day_start_equity: 95, day: null } },
} as unknown as Parameters<typeof describeLimits>[0];

test('a session uses its share of the thresholds of the firm, with all working orders filled', async () => {
  const of = (level: string, subject: string, limits: object, paper = 1) => ({
    level,
    subject,
    currency: 'USD',
    limits,
    sessions: { paper, production: 0 },
  });
  const thresholds = [
    of(
      'firm',
      'firm',
      { max_gross_exposure: 400, max_order_value: 50, max_messages_per_second: 39 },
      4,
    ),
    of('desk', 'Rates', { max_daily_loss: 40, max_gross_exposure: 130 }, 2),
    of('desk', 'Another', { max_daily_loss: 1 }),
    of('instrument', 'A', { max_order_value: 1 }),
  ];
  const spec = {
    universe: { currency: 'USD', symbols: ['A', 'B'] },
    attribution: { desk: 'Rates' },
    risk: {},
  };
  const bot = { document: { spec }, active_deployments: [] } as unknown as BotDetail;
  const limits = await readLimits({ call: async () => ({ thresholds }) as never }, bot, 'run');
  expect(limits).toEqual({
    threshold_order_value: 50,
    threshold_gross_exposure: 65,
    threshold_daily_loss: 20,
    threshold_messages: 9,
  });
  // A at 4 × 10 with its order filled, B at 1 × 20, and C at 1 × 5.
  expect(describeLimits(session, { A: 10, B: 20 }, limits)).toEqual([
    { name: 'threshold_order_value', limit: 50, used: 18 },
    { name: 'threshold_gross_exposure', limit: 65, used: 65 },
    { name: 'threshold_daily_loss', limit: 20, used: 5 },
    { name: 'threshold_messages', limit: 9, used: 2 },
  ]);
});
