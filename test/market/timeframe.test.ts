import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/base/durations.ts';
import {
  barSpacing,
  parseTimeframe,
  TIMEFRAME_NAMES,
  timeframeOfSpacing,
} from '../../src/market/timeframe.ts';
import { flatBars, instants } from './bars.ts';

test.each([
  ['1m', MINUTE],
  ['15m', 15 * MINUTE],
  ['4h', 4 * HOUR],
  ['1d', DAY],
  ['1w', 7 * DAY],
])('%s lasts %i ms', (name, ms) => {
  expect(parseTimeframe(name)).toEqual({ name, ms });
});

test.each(['', '1', 'd', '0m', '7m', '1M', '1 h', '1D', '36h', '2d', '1y'])(
  '%j is not a timeframe',
  (text) => {
    expect(() => parseTimeframe(text)).toThrow(expect.objectContaining({ code: 'invalid_data' }));
  },
);

test('every timeframe is derived from the spacing of its bars', () => {
  for (const name of TIMEFRAME_NAMES) {
    const { ms } = parseTimeframe(name);
    const spacing = name === '1mo' ? 31 * DAY : ms;
    expect(timeframeOfSpacing(spacing)?.name).toBe(name);
  }
  expect(timeframeOfSpacing(7 * MINUTE)).toBeUndefined();
});

describe('the spacing of bars', () => {
  const spacing = (times: readonly number[]): number | undefined => barSpacing(flatBars(times));

  test('is the shortest usual distance, despite nights and gaps', () => {
    const day = instants(0, 5 * MINUTE, 78);
    const days = instants(0, DAY, 20).flatMap((start) => day.map((time) => start + time));
    expect(spacing(days)).toBe(5 * MINUTE);
    expect(spacing(days.filter((_, index) => index % 3 !== 0))).toBe(5 * MINUTE);
  });

  test('is a day if bars are stamped at local midnight, despite daylight saving time', () => {
    const winter = instants(23 * HOUR, DAY, 80);
    const summer = instants(winter.at(-1)! + DAY - HOUR, DAY, 80);
    expect(spacing([...winter, ...summer])).toBe(DAY);
  });

  test('is a month for monthly bars, although months differ in length', () => {
    const months = Array.from({ length: 36 }, (_, month) => Date.UTC(2000, month, 1));
    expect(timeframeOfSpacing(spacing(months)!)?.name).toBe('1mo');
  });

  test('is unknown for one bar', () => {
    expect(spacing([0])).toBeUndefined();
    expect(spacing([])).toBeUndefined();
  });
});
