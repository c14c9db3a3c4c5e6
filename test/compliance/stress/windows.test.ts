import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findBusiestWindow } from '../../../src/compliance/stress/peaks.ts';

const EVENTS = fc.array(
  fc.record({
    time: fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 2 ** 34 })),
    amount: fc.integer({ min: 0, max: 9 }),
  }),
  { maxLength: 60 },
);

test('findBusiestWindow finds the maximum of all windows', () => {
  fc.assert(
    fc.property(EVENTS, fc.integer({ min: 1, max: 40 }), (events, width) => {
      const inOrder = events.toSorted((a, b) => a.time - b.time);
      const within = (from: number) =>
        inOrder.filter(({ time }) => time >= from && time < from + width);
      const sums = inOrder.map(({ time }) =>
        within(time).reduce((sum, { amount }) => sum + amount, 0),
      );
      const times = inOrder.map(({ time }) => time);
      const amounts = inOrder.map(({ amount }) => amount);
      const { amount, first, end } = findBusiestWindow(times, amounts, width);
      expect(amount).toBe(Math.max(0, ...sums));
      if (amount > 0) expect(inOrder.slice(first, end)).toEqual(within(times[first]!));
    }),
  );
});

test('findBusiestWindow finds a peak that straddles two calendar seconds', () => {
  const times = [900, 950, 1000, 1050, 1899, 1900];
  const ones = times.map(() => 1);
  expect(findBusiestWindow(times, ones, 1000)).toEqual({ amount: 5, first: 0, end: 5 });
});
