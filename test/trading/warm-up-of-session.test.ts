import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadBot } from '../../src/bots/load-bot.ts';
import { DAY } from '../../src/base/durations.ts';
import { warmUpOfSession } from '../../src/trading/warm-up-of-session.ts';

const FILE = join(import.meta.dirname, '../../examples/sma-crossover.yaml');
const botWith = (slow: string) =>
  loadBot(FILE, { params: { fast: '10', slow }, from: undefined, to: undefined });

test('a session gets the bars that its indicators need, without a note', () => {
  expect(warmUpOfSession(botWith('200'), DAY)).toEqual({ bars: 200, notes: [] });
});

test('indicators that need more bars than a session records are named', () => {
  expect(warmUpOfSession(botWith('5000'), DAY)).toEqual({
    bars: 4000,
    notes: [
      'sma(close,5000) is not ready at the start: it needs 5,000 bars, and a session has at most 4,000 bars of each instrument before its first step.',
    ],
  });
});
