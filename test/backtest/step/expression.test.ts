import { expect, test } from 'vitest';
import { parseExpression, type Reader } from '../../../src/backtest/step/expression.ts';

const COLUMNS: Readonly<Record<string, readonly number[]>> = {
  a: [1, 2, 3],
  b: [3, 2, 1],
  'BTC/USDT.close': [10, 20, 30],
  'A"B.close': [5, 6, 7],
  time: [Date.UTC(2020, 0, 1), Date.UTC(2020, 0, 2), Date.UTC(2020, 0, 3)],
};

function find(name: string): Reader {
  const column = Object.hasOwn(COLUMNS, name) ? COLUMNS[name] : undefined;
  if (column === undefined) throw new Error(`unknown name ${name}`);
  return (step) => column[step] ?? Number.NaN;
}

test.each([
  ['1 + 2 * 3 - 4 / 2', [5, 5, 5]],
  ['-(a - b) % 2', [0, 0, 0]],
  ['a > b', [0, 0, 1]],
  ['a >= b and not (a == 3)', [0, 1, 0]],
  ['a < b || a > b && b == 1', [1, 0, 1]],
  ['a == 1 or a == 2 and b == 1', [1, 0, 0]],
  ['!a', [0, 0, 0]],
  ['a[1]', [Number.NaN, 1, 2]],
  ['a[1] < a', [0, 1, 1]],
  ['a[1] != a[1]', [1, 0, 0]],
  ['"BTC/USDT".close / 10', [1, 2, 3]],
  ['"A""B".close', [5, 6, 7]],
  ['time >= 2020-01-02', [0, 1, 1]],
  ['time == 2020-01-02T00:00', [0, 1, 0]],
  ['time - 2020-01-01 > 86400e3', [0, 0, 1]],
  ['crossed_above(a, b)', [0, 0, 1]],
  ['crossed_below(b, a)', [0, 0, 1]],
  ['max(a, b) - min(a, b) + abs(-a)', [3, 2, 5]],
])('%s', (text, values) => {
  const read = parseExpression(text, find);
  expect([0, 1, 2].map((step) => Math.abs(read(step)))).toEqual(values);
});

test.each([
  ['', 'the expression ends before a value'],
  ['a >', 'the expression ends before a value'],
  ['(a', 'the expression ends before ")"'],
  ['a b', 'expected an operator or the end at column 3 of the expression, found "b"'],
  ['a = b', 'expected a value or an operator at column 3 of the expression, found "= b"'],
  ['a[-1]', 'expected a number of steps at column 3 of the expression, found "-"'],
  ['min(a)', 'expected min with 2 values at column 1 of the expression, found "min"'],
  ['process.exit(1)', 'expected one of the functions abs, min, max'],
  ['a > 2020-13-01', 'expected a date such as 2020-01-31 at column 5'],
  ['a > 2024-02-31', 'expected a date such as 2020-01-31 at column 5'],
  ['a > 2024-02-31T10:00', 'expected a date such as 2020-01-31 at column 5'],
  ['constructor', 'unknown name constructor'],
  ['__proto__', 'unknown name __proto__'],
  ['toString(1)', 'expected one of the functions abs, min, max'],
])('%j is rejected with the column', (text, message) => {
  expect(() => parseExpression(text, find)).toThrow(message);
});

test.each([
  ['parentheses', (depth: number) => `${'('.repeat(depth)}1${')'.repeat(depth)}`],
  ['terms', (count: number) => `1${'+1'.repeat(count)}`],
  ['signs', (count: number) => `${'-'.repeat(count)}1`],
  ['negations', (count: number) => `${'!'.repeat(count)}1`],
])('many %s are computed up to a length of 500 characters, and rejected beyond it', (_, write) => {
  const count = write(249).length === 499 ? 249 : 499;
  expect(parseExpression(write(count), find)(0)).not.toBeNaN();
  expect(() => parseExpression(write(20_000), find)).toThrow(/^an expression of \d+ characters$/);
});
