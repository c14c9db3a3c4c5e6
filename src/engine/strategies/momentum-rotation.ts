import type { Instrument } from '../instrument.ts';
import { integer } from '../params.ts';
import { defineStrategy } from '../strategy.ts';

/**
 * Every `hold` steps, buys equal shares of the `top` instruments that rose most over their last
 * `lookback` bars. Ties keep the order of the universe. It buys nothing until `top` instruments
 * have that much history.
 */
export const momentumRotation = defineStrategy({
  name: 'momentum_rotation',
  description: 'Holds the instruments that rose most, selected again at fixed intervals.',
  params: {
    lookback: integer({
      default: 60,
      min: 1,
      description: 'Number of bars over which the rise is measured.',
    }),
    hold: integer({ default: 20, min: 1, description: 'Number of steps between two selections.' }),
    top: integer({ default: 2, min: 1, description: 'Number of instruments held at once.' }),
  },
  instruments: { min: 2, max: Infinity },
  create({ params, instruments, broker }) {
    const weight = 1 / params.top;
    let step = 0;
    let nextChoice = params.lookback;
    const rise = (instrument: Instrument): number =>
      instrument.close / instrument.ago('close', params.lookback) - 1;
    return {
      onBar() {
        if (step++ < nextChoice) return;
        const ranked = instruments
          .map((instrument) => ({ instrument, rise: rise(instrument) }))
          .filter((candidate) => !Number.isNaN(candidate.rise))
          .sort((a, b) => b.rise - a.rise);
        if (ranked.length < params.top) return;
        nextChoice = step - 1 + params.hold;
        const chosen = ranked.slice(0, params.top).map(({ instrument }) => instrument);
        const dropped = instruments.filter(
          (instrument) =>
            !chosen.includes(instrument) &&
            (broker.position(instrument) !== 0 || broker.working(instrument).length > 0),
        );
        for (const instrument of dropped) broker.target(instrument, 0);
        // Positions that shrink come first, because their proceeds pay for the others.
        const value = (instrument: Instrument): number =>
          broker.position(instrument) * instrument.close;
        for (const instrument of chosen.sort((a, b) => value(b) - value(a))) {
          broker.target(instrument, weight);
        }
      },
    };
  },
});
