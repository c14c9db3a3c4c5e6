import { expect, test } from 'vitest';
import { addSpan, parseSpan } from '../../src/base/calendar-span.ts';
import { formatTime } from '../../src/market/bar-time.ts';

const added = (date: string, span: string, times?: number): string =>
  formatTime(addSpan(Date.parse(date), parseSpan(span), times));

test.each([
  ['2020-01-31', '1mo', 1, '2020-02-29'],
  ['2021-01-31', '1mo', 1, '2021-02-28'],
  ['2020-02-29', '1y', 1, '2021-02-28'],
  ['2020-02-29', '1y', 4, '2024-02-29'],
  ['2020-03-31', '1mo', -1, '2020-02-29'],
  ['2020-01-15', '6mo', -1, '2019-07-15'],
  ['2020-12-31', '2w', 1, '2021-01-14'],
  ['2020-01-03', '5d', -1, '2019-12-29'],
  ['2020-01-31T14:30:00Z', '3y', 1, '2023-01-31T14:30:00Z'],
])('%s + %s × %s is %s', (date, span, times, expected) => {
  expect(added(date, span, times)).toBe(expected);
});

test.each(['', '3', 'y', '0y', '1.5y', '-1y', '3 y', '3Y', '3m', '3h'])(
  '%o is not a length of time',
  (text) => {
    expect(() => parseSpan(text)).toThrow(`${JSON.stringify(text)} is not a length of time`);
  },
);
