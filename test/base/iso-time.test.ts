import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DAY } from '../../src/base/durations.ts';
import { isoTime } from '../../src/base/iso-time.ts';

const MOST_SECONDS = 8.64e12 - 1;

test('times are the text of Date, whatever time was formatted before', () => {
  const seconds = fc.integer({ min: -MOST_SECONDS, max: MOST_SECONDS });
  const ms = fc.oneof(
    seconds.map((count) => count * 1000),
    seconds,
    fc.integer({ min: -3, max: 3 }).map((count) => count * DAY),
    fc.double({ min: -DAY, max: DAY, noNaN: true }),
  );
  fc.assert(
    fc.property(fc.array(ms), (times) => {
      expect(times.map(isoTime)).toStrictEqual(times.map((time) => new Date(time).toISOString()));
    }),
  );
});

test('a number that is not a valid time is an error', () => {
  expect(() => isoTime(Number.NaN)).toThrow(RangeError);
});
