import { expect, test } from 'vitest';
import { planWindows } from '../../../src/backtest/windows/plan-windows.ts';
import { parseSpan } from '../../../src/base/calendar-span.ts';
import { formatTime, type Window } from '../../../src/market/bar-time.ts';

const DATA = { first: Date.UTC(2000, 0, 3, 14, 30), last: Date.UTC(2005, 5, 30) };

interface Given {
  readonly train: string;
  readonly test: string;
  readonly embargo?: string;
  readonly anchored?: boolean;
}

function plan({ train, test: testSpan, embargo, anchored = false }: Given): string[] {
  const windows = planWindows(DATA, {
    train: parseSpan(train),
    test: parseSpan(testSpan),
    anchored,
    embargo: embargo === undefined ? undefined : parseSpan(embargo),
  });
  const text = ({ from, to }: Window): string => `${formatTime(from)}–${formatTime(to)}`;
  return windows.map((one) => `${text(one.train)} ${text(one.test)}`);
}

test('rolling windows keep the length of the training, and the last test ends with the last bar', () => {
  expect(plan({ train: '3y', test: '1y' })).toEqual([
    '2000-01-03–2003-01-03 2003-01-03–2004-01-03',
    '2001-01-03–2004-01-03 2004-01-03–2005-01-03',
    '2002-01-03–2005-01-03 2005-01-03–2005-06-30T00:00:00.001Z',
  ]);
});

test('anchored windows all begin with the data', () => {
  expect(plan({ train: '3y', test: '1y', anchored: true })).toEqual([
    '2000-01-03–2003-01-03 2003-01-03–2004-01-03',
    '2000-01-03–2004-01-03 2004-01-03–2005-01-03',
    '2000-01-03–2005-01-03 2005-01-03–2005-06-30T00:00:00.001Z',
  ]);
});

test('an embargo separates training from test, and tests still follow each other', () => {
  expect(plan({ train: '4y', test: '6mo', embargo: '5d' })).toEqual([
    '2000-01-03–2004-01-03 2004-01-08–2004-07-08',
    '2000-07-03–2004-07-03 2004-07-08–2005-01-08',
    '2001-01-03–2005-01-03 2005-01-08–2005-06-30T00:00:00.001Z',
  ]);
});

test('data that end before the first test window are rejected', () => {
  expect(() => plan({ train: '6y', test: '1y' })).toThrow(
    'the data end 2005-06-30, before the first test window, which begins 2006-01-03',
  );
});
