import fc from 'fast-check';
import { expect, it } from 'vitest';
import { drawdownOf, EquityCurve } from '../../src/engine/equity-curve.ts';

const HOUR = 3_600_000;

/** Consecutive steps, and the units held in them. Few prices, so that many of them are equal. */
const stretch = fc.record({
  repeats: fc.constantFrom(1, 1, 1, 20),
  closes: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 }),
  position: fc.constantFrom(-2, 0, 0, 1, 3),
  isStepwise: fc.boolean(),
});

it('drawdowns are the same whether equity is recorded step by step or in stretches', () => {
  fc.assert(
    fc.property(fc.array(stretch, { minLength: 1, maxLength: 12 }), (drawn) => {
      const stretches = drawn.map(({ closes, repeats, ...rest }) => ({
        closes: Array.from({ length: repeats }, () => closes).flat(),
        ...rest,
      }));
      const close = Float64Array.from(stretches.flatMap(({ closes }) => closes));
      const times = Float64Array.from(close, (_, step) => step * HOUR);
      const curve = new EquityCurve(10, times, new Float64Array(close.length));
      let cash = 10;
      let step = 0;
      for (const { closes, position, isStepwise } of stretches) {
        const end = step + closes.length;
        const money = cash - position * close[step]!;
        if (isStepwise) {
          for (let at = step; at < end; at += 1) {
            curve.values[at] = money + position * close[at]!;
            curve.record(at);
          }
        } else if (position === 0) curve.hold(step, end, money);
        else if (curve.mark(step, end, money, position, close) < end) break;
        const marked = close.subarray(step, end).map((price) => money + position * price);
        expect(curve.values.subarray(step, end)).toEqual(marked);
        cash = curve.values[end - 1]!;
        step = end;
      }
      const { recorded } = curve;
      expect(curve.drawdown()).toEqual(
        drawdownOf(10, times.subarray(0, recorded), curve.values.subarray(0, recorded)),
      );
    }),
  );
});

it('a drawdown lasts from its peak to the step that reaches it again', () => {
  const times = Float64Array.from([0, 1, 2, 3, 4, 5, 6], (hour) => hour * HOUR);
  const values = Float64Array.from([100, 120, 90, 110, 120, 60, 90]);
  expect(drawdownOf(100, times, values)).toEqual({
    peak: 120,
    deepest: -0.5,
    longestMs: 3 * HOUR,
  });
});
