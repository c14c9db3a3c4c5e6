import { describe, expect, test } from 'vitest';
import { findGaps, findUncoveredEdges, type GapReport } from '../../src/market/data-gaps.ts';
import { DAY, HOUR, MINUTE } from '../../src/base/durations.ts';
import { parseTimeframe, type TimeframeName } from '../../src/market/timeframe.ts';
import { flatBars, instants } from './bars.ts';

/** A Monday. */
const START = Date.UTC(2024, 0, 1);
const NONE: GapReport = { gaps: [], count: 0, missing: 0, shortHoles: 0 };

const find = (times: readonly number[], name: TimeframeName): GapReport =>
  findGaps(flatBars(times), parseTimeframe(name));

const isWeekday = (time: number): boolean => ![0, 6].includes(new Date(time).getUTCDay());
const weekdays = (count: number): number[] => instants(START, DAY, count).filter(isWeekday);

describe('in daily bars', () => {
  test('weekends are not gaps if the market never trades on them', () => {
    expect(find(weekdays(400), '1d')).toEqual(NONE);
  });

  test('up to four missing weekdays are a short hole, and more are a gap', () => {
    const days = weekdays(400);
    const holed = [...days.slice(0, 50), ...days.slice(54, 100), ...days.slice(105)];
    expect(find(holed, '1d')).toEqual({
      gaps: [{ after: days[99], before: days[105], missing: 5 }],
      count: 1,
      missing: 5,
      shortHoles: 1,
    });
  });

  test('a single missing day is a gap if the market trades every day', () => {
    const days = instants(START, DAY, 100);
    expect(find(days.toSpliced(40, 1), '1d').gaps).toEqual([
      { after: days[39], before: days[41], missing: 1 },
    ]);
  });

  test('one Saturday session does not make Saturday a trading day', () => {
    const days = [...weekdays(400), START + 26 * DAY].toSorted((a, b) => a - b);
    expect(find(days, '1d')).toEqual(NONE);
  });

  test('weekdays follow the time zone of bars stamped at local midnight', () => {
    const days = weekdays(400).map((day) => day - 9 * HOUR);
    expect(find(days, '1d')).toEqual(NONE);
    expect(find(days.toSpliced(10, 5), '1d').missing).toBe(5);
  });
});

describe('in intraday bars', () => {
  /** New York hours without 12:00 to 13:00 local time: 13:30 to 20:00 UTC, an hour later in winter. */
  const session = (day: number): number[] => {
    const opening = day + 13.5 * HOUR + (day < START + 69 * DAY ? HOUR : 0);
    return instants(opening, 5 * MINUTE, 78).filter((_, slot) => slot < 30 || slot >= 42);
  };
  const sessions = weekdays(140).flatMap(session);

  test('nights, weekends, lunch breaks and daylight saving time are not gaps', () => {
    expect(find(sessions, '5m')).toEqual(NONE);
  });

  test('missing bars of a session are counted, and a day without bars is a short hole', () => {
    const day = START + 100 * DAY;
    const hole = (time: number): boolean => time >= day + 15 * HOUR && time < day + 15.5 * HOUR;
    const holiday = START + 57 * DAY;
    const holed = sessions.filter(
      (time) => !hole(time) && !(time >= holiday && time < holiday + DAY),
    );
    expect(find(holed, '5m')).toEqual({
      gaps: [{ after: day + 15 * HOUR - 5 * MINUTE, before: day + 15.5 * HOUR, missing: 6 }],
      count: 1,
      missing: 6,
      shortHoles: 1,
    });
  });

  test('a session that ends early is a gap', () => {
    const close = START + 100 * DAY + 18 * HOUR;
    const holed = sessions.filter((time) => time < close || time >= START + 101 * DAY);
    expect(find(holed, '5m').missing).toBe(24);
  });

  test('every missing bar counts if trading never stops, also whole days', () => {
    const hours = instants(START, HOUR, 24 * 60);
    const holed = hours.filter((_, index) => index !== 100 && !(index >= 500 && index < 560));
    expect(find(holed, '1h')).toMatchObject({ count: 2, missing: 61, shortHoles: 0 });
  });

  test('less than three days of data show only gaps within a day', () => {
    const day = instants(START + 9 * HOUR, MINUTE, 60);
    const two = [...day, ...day.map((time) => time + DAY)];
    expect(find(two.toSpliced(20, 3), '1m').missing).toBe(3);
    expect(find(two, '1m')).toEqual(NONE);
  });
});

test('missing weeks and months are counted by the calendar', () => {
  const weeks = instants(START, 7 * DAY, 60).toSpliced(7, 2);
  expect(find(weeks, '1w').missing).toBe(2);
  const months = instants(0, 1, 36).map((month) => Date.UTC(2020, month, 1));
  expect(find(months, '1mo')).toEqual(NONE);
  expect(find(months.toSpliced(5, 1), '1mo').missing).toBe(1);
});

test('one or two bars have no gaps', () => {
  expect(find([], '1d')).toEqual(NONE);
  expect(find([START], '1m')).toEqual(NONE);
});

test('all gaps are counted, but only the first 1000 are listed', () => {
  const hours = instants(START, HOUR, 24 * 400).filter((_, index) => index % 5 !== 4);
  const report = find(hours, '1h');
  expect(report.count).toBe(report.missing);
  expect(report.count).toBeGreaterThan(1500);
  expect(report.gaps).toHaveLength(1000);
});

describe('the edges of a window', () => {
  const uncovered = (times: readonly number[], name: TimeframeName, from?: string, to?: string) =>
    findUncoveredEdges(flatBars(times), parseTimeframe(name), { from, to }).map(
      ({ edge, asked, missing }) => [edge, asked, missing],
    );

  test('are covered up to a weekend and up to four holidays', () => {
    const days = weekdays(400); // To Monday, 3 February 2025.
    expect(uncovered(days, '1d', '2024-01-01', '2025-02-03')).toEqual([]);
    expect(uncovered(days, '1d', '2023-12-26', '2025-02-09')).toEqual([]);
    expect(uncovered(days, '1d', '2023-12-25', '2025-02-10')).toEqual([
      ['from', '2023-12-25', 5],
      ['to', '2025-02-10', 5],
    ]);
    expect(uncovered(days, '1d')).toEqual([]);
  });

  test('are uncovered by any missing bar if the market never closes', () => {
    const days = instants(START, DAY, 100);
    const last = new Date(days.at(-1)!).toISOString().slice(0, 10);
    expect(uncovered(days, '1d', '2024-01-01', last)).toEqual([]);
    expect(uncovered(days, '1d', '2023-12-31', last)).toEqual([['from', '2023-12-31', 1]]);
    const hours = instants(START, HOUR, 24 * 30);
    expect(uncovered(hours, '1h', '2023-12-31T22:30:00Z')).toEqual([
      ['from', '2023-12-31T22:30:00Z', 1],
    ]);
    expect(uncovered(hours, '1h', undefined, '2024-01-31T02:00:00Z')).toEqual([
      ['to', '2024-01-31T02:00:00Z', 3],
    ]);
  });

  test('count whole weeks and months, whichever day the bars are stamped with', () => {
    const weeks = instants(START, 7 * DAY, 52);
    expect(uncovered(weeks, '1w', '2023-12-27', '2024-12-29')).toEqual([]);
    expect(uncovered(weeks, '1w', '2023-12-25', '2024-12-30')).toEqual([
      ['from', '2023-12-25', 1],
      ['to', '2024-12-30', 1],
    ]);
    const starts = Array.from({ length: 12 }, (_, month) => Date.UTC(2024, month, 1));
    const ends = starts.map((_, month) => Date.UTC(2024, month + 1, 0));
    for (const months of [starts, ends]) {
      expect(uncovered(months, '1mo', '2024-01-01', '2024-12-31')).toEqual([]);
      expect(uncovered(months, '1mo', '2023-11-15', '2025-04-15')).toMatchObject([
        ['from', '2023-11-15', 1],
        ['to', '2025-04-15', months === starts ? 4 : 3],
      ]);
    }
  });
});
