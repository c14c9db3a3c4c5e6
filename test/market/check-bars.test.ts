import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../src/base/format-problem.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import { badDataError, canDrop, checkBars, type CheckReport } from '../../src/market/check-bars.ts';
import type { CsvRow } from '../../src/market/csv-file.ts';
import { keepBars, type FileBars } from '../../src/market/rows.ts';
import { DAY } from '../../src/base/durations.ts';
import { rowsOf, type Row } from './bars.ts';

const START = Date.UTC(2020, 0, 1);

function file(rows: readonly Row[]): FileBars {
  return { bars: barsFromRows(rows), rowOf: (index) => index + 1 };
}

/** A good bar of the given day with some values replaced. */
function bar(
  day: number,
  values: Partial<Record<'time' | 'o' | 'h' | 'l' | 'c' | 'v', number>> = {},
): Row {
  const { time = START + day * DAY, o = 10, h = 12, l = 9, c = 11, v = 5 } = values;
  return [time, o, h, l, c, v];
}

const found = (report: CheckReport): [string, number][] =>
  report.defects.map(({ code, row }) => [code, row]);

describe('a row is bad', () => {
  test.each<[string, Row, string]>([
    ['unreadable_time', bar(1, { time: NaN }), 'the time is missing or cannot be read'],
    ['duplicate_time', bar(0), '2020-01-01 is the time of row 1'],
    ['backward_time', bar(-1), '2019-12-31 is before 2020-01-01 of row 1'],
    ['unreadable_price', bar(1, { h: NaN, c: Infinity }), 'high, close missing or not a number'],
    ['price_not_positive', bar(1, { o: 0, l: -37.63 }), 'open, low zero or negative'],
    ['high_below_low', bar(1, { h: 8 }), 'high 8 is below low 9'],
    ['open_outside_range', bar(1, { o: 12.01 }), 'open 12.01 is outside low 9 to high 12'],
    ['close_outside_range', bar(1, { c: 8.99 }), 'close 8.99 is outside low 9 to high 12'],
    ['unreadable_volume', bar(1, { v: NaN }), 'the volume is missing or not a number'],
    ['negative_volume', bar(1, { v: -1 }), 'volume -1 is negative'],
  ])('for %s', (code, row, message) => {
    const report = checkBars(file([bar(0), row, bar(2)]));
    expect(report).toMatchObject({ rows: 3, badRows: 1, counts: { [code]: 1 } });
    expect(report.defects).toMatchObject([{ code, row: 2, message }]);
    expect([0, 1, 2].map(report.isBad)).toEqual([false, true, false]);
  });
});

test('accepts rounding errors of computed prices', () => {
  const noisy = bar(0, { o: 12 * (1 + 1e-12), c: 9 * (1 - 1e-12) });
  expect(checkBars(file([noisy])).badRows).toBe(0);
});

test('finds all kinds of defects, and counts a row with two defects once', () => {
  const report = checkBars(
    file([bar(0), bar(0, { l: 0 }), bar(1, { time: NaN }), bar(1), bar(0.5), bar(2, { h: 1 })]),
  );
  expect(found(report)).toEqual([
    ['duplicate_time', 2],
    ['price_not_positive', 2],
    ['unreadable_time', 3],
    ['backward_time', 5],
    ['high_below_low', 6],
  ]);
  expect(report.badRows).toBe(4);
});

describe('of times that are out of order', () => {
  const times = (...days: readonly number[]): CheckReport =>
    checkBars(file(days.map((day) => bar(day))));

  test('one row from the future is bad, not all rows after it', () => {
    const days = Array.from({ length: 100 }, (_, day) => (day === 60 ? 3650 : day));
    const report = times(...days);
    expect(report).toMatchObject({ badRows: 1, counts: { forward_time: 1 } });
    expect(report.defects).toEqual([
      {
        code: 'forward_time',
        row: 61,
        message: '2029-12-29 is after 2020-03-02 of row 62',
      },
    ]);
  });

  test('an early outlier does not hide later ones', () => {
    expect(found(times(0, 5, 1, 5, 5, 4, 6))).toEqual([
      ['forward_time', 2],
      ['duplicate_time', 5],
      ['backward_time', 6],
    ]);
  });

  test('the later of two rows is bad if either could be wrong', () => {
    expect(found(times(0, 5, 1, 6))).toEqual([['backward_time', 3]]);
  });

  test('the fewest possible rows are bad, for any times', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 12 }), (days) => {
        const longest: number[] = [];
        for (const [index, day] of days.entries()) {
          const before = longest.filter((_, other) => days[other]! < day);
          longest[index] = Math.max(0, ...before) + 1;
        }
        expect(days.length - times(...days).badRows).toBe(Math.max(0, ...longest));
      }),
    );
  });
});

describe('the error for bad data', () => {
  const layout = { time: [0], open: 1, high: 2, low: 3, close: 4, volume: 5 } as const;
  const refuse = (rows: readonly Row[], texts = new Map<number, CsvRow>()) =>
    badDataError(
      { path: '/data/x.csv', layout, timeFormat: undefined },
      checkBars(file(rows)),
      texts,
    );

  test('names the file, line, row and reason of each defect, and a remedy', () => {
    const error = refuse(
      [bar(0), bar(0), bar(1), bar(2, { v: -1 })],
      new Map([
        [2, { line: 3, fields: [] }],
        [4, { line: 5, fields: [] }],
      ]),
    );
    expect(error.code).toBe('invalid_data');
    expect(error.message).toBe(
      '/data/x.csv has 2 bad of 4 rows: 1 duplicate_time, 1 negative_volume',
    );
    expect(error.problems.map(formatProblem)).toEqual([
      '/data/x.csv:3 duplicate_time row 2: 2020-01-01 is the time of row 1',
      '/data/x.csv:5 negative_volume row 4: volume -1 is negative',
    ]);
    expect(error.remedy).toContain('data.repair: drop in the bot');
  });

  test('lists twenty defects of a kind and counts the rest', () => {
    const rows = Array.from({ length: 100 }, (_, day) => bar(day, day % 2 ? { v: -day } : {}));
    const error = refuse([...rows, bar(100, { h: 1 })]);
    expect(error.problems).toHaveLength(22);
    expect(error.problems[20]).toMatchObject({
      code: 'negative_volume',
      message: 'and 30 more rows',
    });
    expect(error.problems[21]!.code).toBe('high_below_low');
  });

  test('lists three defects with the same message, with the text in the file', () => {
    const rows = [0, 1, 2, 3, 4].map((day) => bar(day, { time: NaN }));
    const texts = new Map(
      [1, 2, 3].map((row) => [row, { line: row + 1, fields: [`0${row}.01.2023`] }]),
    );
    const error = refuse([...rows, bar(5, { o: NaN, c: NaN })], texts);
    expect(error.problems.map(({ message }) => message)).toEqual([
      'row 1: the time is missing or cannot be read: "01.01.2023"',
      'row 2: the time is missing or cannot be read: "02.01.2023"',
      'row 3: the time is missing or cannot be read: "03.01.2023"',
      'and 2 more rows',
      'row 6: open, close missing or not a number',
    ]);
    expect(error.remedy).toMatch(/^Write times as 2020-04-17, .* Write numbers as 1100.50/);
    expect(refuse([bar(0), bar(1, { v: -1 })]).remedy).not.toContain('Write');
  });

  test('suggests sorting a file that is newest first instead of dropping its rows', () => {
    const rows = [bar(3), bar(2), bar(1), bar(0)];
    expect(canDrop(checkBars(file(rows)))).toBe(false);
    expect(refuse(rows).remedy).toBe('Sort the file oldest first.');
  });
});

const price = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: 1, max: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(0, -1, NaN) },
);
const anyRow = fc.tuple(
  fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 0, max: 30 }).map((day) => START + day * DAY) },
    { weight: 1, arbitrary: fc.constant(NaN) },
  ),
  price,
  price,
  price,
  price,
  fc.oneof(
    { weight: 20, arbitrary: fc.nat(9) },
    { weight: 1, arbitrary: fc.constantFrom(-1, NaN) },
  ),
);

test('dropping bad rows keeps exactly the good rows, with their row numbers', () => {
  fc.assert(
    fc.property(fc.array(anyRow), (rows) => {
      const report = checkBars(file(rows));
      const kept = keepBars(file(rows), (index) => !report.isBad(index));
      expect(checkBars(kept).badRows).toBe(0);
      expect(rowsOf(kept.bars)).toEqual(rows.filter((_, index) => !report.isBad(index)));
      expect(kept.bars.length + report.badRows).toBe(rows.length);
      const numbers = Array.from({ length: kept.bars.length }, (_, index) => kept.rowOf(index));
      expect(numbers.map((row) => rows[row - 1])).toEqual(rowsOf(kept.bars));
    }),
  );
});

test('keeps the first of several bars with the same time', () => {
  const rows = [bar(0, { c: 10 }), bar(0, { c: 11 }), bar(0, { c: 12 }), bar(1)];
  const report = checkBars(file(rows));
  const kept = keepBars(file(rows), (index) => !report.isBad(index));
  expect(rowsOf(kept.bars)).toEqual([rows[0], rows[3]]);
});
