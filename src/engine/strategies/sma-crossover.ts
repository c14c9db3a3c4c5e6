import { Crossover } from '../indicators/crossover.ts';
import { Sma } from '../indicators/sma.ts';
import { integer } from '../params.ts';
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
  create({ params, instruments, broker }) {
    const instrument = instruments[0];
    const fast = new Sma(params.fast);
    const slow = new Sma(params.slow);
    const crossover = new Crossover();
    let isLong = false;
    return {
      onBar() {
        const { close } = instrument;
        const crossed = crossover.next(fast.next(close), slow.next(close));
        // Averages that meet and separate again on the same side cross twice in one direction.
        if (crossed === 0 || crossed > 0 === isLong) return;
        isLong = crossed > 0;
        broker.target(instrument, isLong ? 1 : 0);
      },
    };
  },
});
