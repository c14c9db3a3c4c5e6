import { number } from '../params.ts';
import { defineStrategy } from '../strategy.ts';

/**
 * Holds an equal share of each instrument, from a score of a model of at least `enter` until a
 * score below `exit`.
 */
export const modelSignal = defineStrategy({
  name: 'model_signal',
  description:
    'Holds the instruments that a model scores high. Needs a model with an output named score.',
  params: {
    enter: number({ default: 0.5, description: 'Buys at this score or above.' }),
    exit: number({ default: 0.5, description: 'Sells below this score.' }),
  },
  signals: ['score'],
  check: ({ enter, exit }) => (exit <= enter ? undefined : 'exit must be at most enter'),
  create({ params, instruments, broker }) {
    return {
      onBar() {
        for (const instrument of instruments) {
          if (!instrument.fresh) continue;
          // NaN while the inputs of the model warm up; both comparisons are then false.
          const score = instrument.signal('score');
          const held = broker.position(instrument) > 0;
          if (!held && score >= params.enter) broker.target(instrument, 1 / instruments.length);
          else if (held && score < params.exit) broker.target(instrument, 0);
        }
      },
    };
  },
});
