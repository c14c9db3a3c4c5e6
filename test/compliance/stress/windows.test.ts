import fc from 'fast-check';
import { expect, test } from 'vitest';
import { busiestWindow, Columns, orderInTime } from '../../../src/compliance/stress/windows.ts';

const EVENTS = fc.array(
  fc.record({
    time: fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 2 ** 34 })),
    amount: fc.integer({ min: 0, max: 9 }),
  }),
  { maxLength: 60 },
);

test('busiestWindow finds the maximum of all windows', async () => {
  await fc.assert(
    fc.asyncProperty(EVENTS, fc.integer({ min: 1, max: 40 }), async (events, width) => {
      const begun = Date.UTC(2026, 0);
      const times = Float64Array.from(events, ({ time }) => begun + time);
      const amounts = Float64Array.from(events, ({ amount }) => amount);
      const order = await orderInTime(times);
      const inOrder = Array.from(order, (at) => times[at]);
      expect(inOrder).toEqual(Array.from(times).sort((a, b) => a - b));
      const within = (from: number) =>
        events.filter((_, at) => times[at]! >= from && times[at]! < from + width);
      const counts = Array.from(times, (from) => within(from).length);
      const sums = Array.from(times, (from) =>
        within(from).reduce((sum, { amount }) => sum + amount, 0),
      );
      const count = busiestWindow({ times }, order, width);
      expect(count.amount).toBe(Math.max(0, ...counts));
      expect(count.from === undefined ? 0 : within(count.from).length).toBe(count.amount);
      expect(busiestWindow({ times, amounts }, order, width).amount).toBe(Math.max(0, ...sums));
    }),
  );
});

test('busiestWindow finds a peak that straddles two calendar seconds', async () => {
  const times = Float64Array.from([900, 950, 1000, 1050, 1899, 1900]);
  const order = await orderInTime(times);
  expect(busiestWindow({ times }, order, 1000)).toEqual({ amount: 5, from: 900 });
});

test('columns keep their values while they grow', () => {
  const columns = new Columns(2);
  for (let i = 0; i < 3000; i += 1) columns.push(i, -i);
  expect(columns.column(0).length).toBe(3000);
  expect(columns.column(1)[2999]).toBe(-2999);
});
