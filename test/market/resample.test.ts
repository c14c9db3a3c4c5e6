import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { barsFromRows, type Bars } from '../../src/market/bars.ts';
import { resample } from '../../src/market/resample.ts';
import { DAY, HOUR, MINUTE } from '../../src/base/durations.ts';
import { formatTime } from '../../src/market/bar-time.ts';
import { barSpacing, parseTimeframe, type TimeframeName } from '../../src/market/timeframe.ts';
import { calendarOf } from '../../src/market/trading-calendar.ts';
import { flatBars, instants, rowsOf, type Row } from './bars.ts';

const to = (bars: Bars, name: TimeframeName): Bars => resample(bars, parseTimeframe(name));

test('resampling takes first open, highest high, lowest low, last close and all volume, and adds no bar', () => {
  const start = Date.UTC(2020, 0, 1);
  const bars = barsFromRows([
    [start, 10, 12, 9, 11, 100],
    [start + MINUTE, 11, 15, 10, 14, 50],
    [start + 2 * MINUTE, 14, 14, 8, 9, 25],
    [start + 3 * HOUR + 59 * MINUTE, 9, 9.5, 8.5, 9.25, 7],
  ]);
  expect(rowsOf(to(bars, '1h'))).toEqual([
    [start, 10, 15, 8, 9, 175],
    [start + 3 * HOUR, 9, 9.5, 8.5, 9.25, 7],
  ]);
});

describe('buckets are aligned to UTC:', () => {
  const starts = (times: readonly string[], name: TimeframeName): string[] => {
    const bars = to(flatBars(times.map((time) => Date.parse(time))), name);
    return [...bars.time].map(formatTime);
  };
  const days = ['2023-12-31', '2024-01-01', '2024-01-07', '2024-01-08', '2024-02-29', '2024-03-01'];

  test('weeks begin on Monday', () => {
    expect(starts(days, '1w')).toEqual(['2023-12-25', '2024-01-01', '2024-01-08', '2024-02-26']);
  });

  test('months begin on their first day', () => {
    const expected = ['2023-12-01', '2024-01-01', '2024-02-01', '2024-03-01'];
    expect(starts(days, '1mo')).toEqual(expected);
  });

  test('buckets before 1970 are aligned, too', () => {
    const old = [
      '1969-12-28T23:00Z',
      '1969-12-29T00:00Z',
      '1969-12-31T23:00Z',
      '1970-01-01T00:00Z',
    ];
    expect(starts(old, '1w')).toEqual(['1969-12-22', '1969-12-29']);
    expect(starts(old, '4h')).toEqual([
      '1969-12-28T20:00:00Z',
      '1969-12-29',
      '1969-12-31T20:00:00Z',
      '1970-01-01',
    ]);
  });
});

describe('bars that do not fill the target are rejected:', () => {
  test.each<[number, TimeframeName]>([
    [DAY, '1h'],
    [HOUR, '30m'],
    [2 * HOUR, '3h'],
    [7 * DAY, '1mo'],
    [7 * MINUTE, '1h'],
    [31 * DAY, '1w'],
  ])('%i ms apart into %s', (spacing, name) => {
    const bars = flatBars(instants(0, spacing, 50));
    expect(() => to(bars, name)).toThrow(expect.objectContaining({ code: 'invalid_data' }));
  });
});

describe('a bar that spans two buckets', () => {
  test.each<[string, TimeframeName, number, number]>([
    ['hours from half past', '4h', Date.UTC(2024, 0, 2, 13, 30), HOUR],
    ['days from midnight in Tokyo', '1w', Date.UTC(2024, 0, 2, 15), DAY],
    ['days from the afternoon', '1mo', Date.UTC(2024, 0, 2, 14, 30), DAY],
  ])('is rejected with its time: %s into %s', (_, name, start, spacing) => {
    const bars = flatBars(instants(start, spacing, 50));
    expect(() => to(bars, name)).toThrow(/the bar of 2024-01-\d\d.* spans two bars of/);
  });

  test('is not reported for bars that fit, wherever they begin', () => {
    const noons = instants(Date.UTC(2024, 0, 1, 14, 30), DAY, 5);
    expect([...to(flatBars(noons), '1w').time]).toEqual([Date.UTC(2024, 0, 1)]);
    const halves = instants(Date.UTC(2024, 0, 2, 13, 30), HOUR, 7);
    expect([...to(flatBars(halves), '1d').time]).toEqual([Date.UTC(2024, 0, 2)]);
  });
});

const minutes = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.nat(20), fc.nat(5), fc.nat(5), fc.nat(99)), {
    minLength: 30,
    maxLength: 400,
  })
  .map((steps) => {
    let time = Date.UTC(2024, 1, 28, 23);
    return barsFromRows(
      steps.map(([pause, base, up, down, volume], index): Row => {
        // Occasional gaps of hours leave buckets of every size empty.
        time += pause * MINUTE + (index % 50 === 49 ? 31 * HOUR : 0);
        const low = 10 + base;
        return [time, low + down, low + down + up, low, low + down, volume];
      }),
    );
  })
  // If few bars are one minute apart, the spacing of the bars is longer.
  .filter((bars) => barSpacing(bars) === MINUTE);

test('resampling in one step and in several gives the same bars', () => {
  fc.assert(
    fc.property(minutes, (bars) => {
      const quarters = to(bars, '15m');
      const days = to(bars, '1d');
      expect(rowsOf(to(quarters, '1d'))).toEqual(rowsOf(days));
      expect(rowsOf(to(to(quarters, '1h'), '1d'))).toEqual(rowsOf(days));
      expect(rowsOf(to(days, '1mo'))).toEqual(rowsOf(to(bars, '1mo')));
    }),
  );
});

test('resampling keeps total volume, price range, first open and last close', () => {
  const sum = (column: Float64Array): number => column.reduce((total, value) => total + value, 0);
  fc.assert(
    fc.property(minutes, fc.constantFrom('5m', '1h', '1d', '1w'), (bars, name) => {
      const longer = to(bars, name);
      expect(sum(longer.volume)).toBe(sum(bars.volume));
      expect(Math.max(...longer.high)).toBe(Math.max(...bars.high));
      expect(Math.min(...longer.low)).toBe(Math.min(...bars.low));
      expect(longer.open[0]).toBe(bars.open[0]);
      expect(longer.close.at(-1)).toBe(bars.close.at(-1));
      expect([...longer.time]).toEqual([...new Set(longer.time)].toSorted((a, b) => a - b));
    }),
  );
});

describe('in the calendar of an exchange', () => {
  const NEW_YORK = calendarOf('XNYS');
  /** Times of longer bars, and how many bars each has. */
  const periods = (bars: Bars, name: TimeframeName): string[] => {
    bars.volume.fill(1);
    const longer = resample(bars, parseTimeframe(name), NEW_YORK);
    return Array.from(longer.time, (time, at) => `${formatTime(time)} ${longer.volume[at]}`);
  };
  const minutesOf = (from: string, count: number): number[] =>
    instants(Date.parse(from), 5 * MINUTE, count);

  test('a day is a session, without the bars before and after it', () => {
    // 4:00 to 20:00 in New York on a Thursday, and on the half day after Thanksgiving.
    const bars = flatBars([
      ...minutesOf('2024-11-27T09:00Z', 192),
      ...minutesOf('2024-11-29T09:00Z', 192),
    ]);
    expect(periods(bars, '1d')).toEqual(['2024-11-27 78', '2024-11-29 42']);
    expect(periods(bars, '1w')).toEqual(['2024-11-25 120']);
  });

  test('shorter bars begin with the session, on both sides of a change of clocks', () => {
    const bars = flatBars([
      ...minutesOf('2024-03-08T14:30Z', 78),
      ...minutesOf('2024-03-11T13:30Z', 78),
    ]);
    expect(periods(bars, '4h')).toEqual([
      '2024-03-08T14:30:00Z 48',
      '2024-03-08T18:30:00Z 30',
      '2024-03-11T13:30:00Z 48',
      '2024-03-11T17:30:00Z 30',
    ]);
  });

  test('daily bars belong to the session of their date; those of dates without a session are left out', () => {
    const days = [
      '2024-12-23',
      '2024-12-24',
      '2024-12-25',
      '2024-12-26',
      '2024-12-27',
      '2025-01-02',
    ];
    const bars = flatBars(days.map((day) => Date.parse(day)));
    expect(periods(bars, '1w')).toEqual(['2024-12-23 4', '2024-12-30 1']);
    expect(periods(bars, '1mo')).toEqual(['2024-12-01 4', '2025-01-01 1']);
  });

  test('bars that begin on the hour count although the session begins at half past', () => {
    const bars = flatBars(instants(Date.UTC(2024, 0, 2, 14), HOUR, 7));
    expect(periods(bars, '1d')).toEqual(['2024-01-02 7']);
    expect(() => periods(bars, '2h')).toThrow('spans two bars of 2h');
  });
});
