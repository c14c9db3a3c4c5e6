import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadBot, type Bot } from '../../src/bots/load-bot.ts';
import { DAY, MINUTE } from '../../src/base/durations.ts';
import { ema } from '../../src/engine/indicators/ema.ts';
import { obv } from '../../src/engine/indicators/obv.ts';
import { sma } from '../../src/engine/indicators/sma.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import { warmUpOfSession } from '../../src/trading/warm-up-of-session.ts';

const FILE = join(import.meta.dirname, '../../examples/sma-crossover.yaml');
const botWith = (slow: string): Bot =>
  loadBot(FILE, { params: { fast: '10', slow }, from: undefined, to: undefined });

test('a session requests all bars that its indicators need', () => {
  expect(warmUpOfSession(botWith('5000'), DAY)).toEqual({ bars: 5000, longer: {}, notes: [] });
});

test('a session requests longer bars in their timeframe, or forms them if it has a calendar', () => {
  const bot = botWith('20');
  const strategy = defineStrategy({
    name: 'long',
    description: '',
    params: {},
    indicators: ({ instruments: [asset] }) => [
      sma(asset.close, 30),
      ema(asset.on('1d').close, 200),
      sma(asset.on('1w').close, 10),
      obv(asset),
    ],
    create: () => ({ onBar() {} }),
  });
  const { spec } = bot.spec;
  const withCalendar = (calendar?: 'XNYS'): Bot => ({
    ...bot,
    strategy,
    spec: {
      ...bot.spec,
      spec: {
        ...spec,
        universe: { ...spec.universe, calendar },
        data: { ...spec.data, timeframe: '1m' },
      },
    },
  });
  const notes = [
    'obv() depends on all bars since the first, and gets the last 4,000 bars before the session.',
  ];
  expect(warmUpOfSession(withCalendar(), MINUTE)).toEqual({
    bars: 4000,
    longer: { '1d': 2273, '1w': 10 },
    notes,
  });
  expect(warmUpOfSession(withCalendar('XNYS'), MINUTE)).toEqual({
    bars: 2273 * 390,
    longer: {},
    notes,
  });
});
