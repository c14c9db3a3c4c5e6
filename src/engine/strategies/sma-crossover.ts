import { sma } from '../indicators/sma.ts';
import { integer } from '../params.ts';
import { crossedAbove, crossedBelow, crossing } from '../series/condition.ts';
import { defineStrategy } from '../strategy.ts';

/** Buys with all equity when the fast average crosses above the slow one; sells when below. */
export const smaCrossover = defineStrategy({
  name: 'sma_crossover',
  description: 'Long while the fast average of closes is above the slow one.',
  params: {
    fast: integer({ default: 10, min: 1, description: 'Bars in the fast average.' }),
    slow: integer({ default: 30, min: 2, description: 'Bars in the slow average.' }),
  },
  instruments: { min: 1, max: 1 },
  check: ({ fast, slow }) => (fast < slow ? undefined : 'fast must be below slow'),
  indicators: ({ params, instruments: [asset] }) => ({
    fast: sma(asset.close, params.fast),
    slow: sma(asset.close, params.slow),
  }),
  wakeOn: ({ fast, slow }) => crossing(fast, slow),
  create({ instruments: [asset], indicators: { fast, slow }, broker }) {
    let isLong = false;
    return {
      onBar() {
        // Averages that meet and separate again on the same side cross twice in one direction.
        if (isLong ? crossedBelow(fast, slow) : crossedAbove(fast, slow)) {
          isLong = !isLong;
          broker.target(asset, isLong ? 1 : 0);
        }
      },
    };
  },
});
