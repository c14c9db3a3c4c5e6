import { defineStrategy } from '../strategy.ts';

/** Buys an equal share of each instrument at its first bar and never trades again. */
export const buyAndHold = defineStrategy({
  name: 'buy_and_hold',
  description: 'Buys every instrument once, in equal shares, and keeps it.',
  params: {},
  create({ instruments, broker }) {
    const weight = 1 / instruments.length;
    return {
      onBar() {
        for (const instrument of instruments) {
          if (instrument.fresh && instrument.count === 1) broker.target(instrument, weight);
        }
      },
    };
  },
});
