import { Crossover, defineStrategy, integer, Sma } from 'service-local/strategy';

/** Holds the instrument while a fast average of its closes is above a slow one. */
export default defineStrategy({
  name: 'my_strategy',
  description: 'Long while the fast average of closes is above the slow one.',

  // The bot file, the command line (`-p fast=20`) and a sweep can set these.
  params: {
    fast: integer({ default: 10, min: 1, description: 'Bars in the fast average.' }),
    slow: integer({ default: 30, min: 2, description: 'Bars in the slow average.' }),
  },
  instruments: { min: 1, max: 1 },

  // Refuses combinations that make no sense although each value is allowed.
  check: ({ fast, slow }) => (fast < slow ? undefined : 'fast must be below slow'),

  // Called once for each run. Variables here belong to that run alone.
  create({ params, instruments, broker }) {
    const instrument = instruments[0];
    const fast = new Sma(params.fast);
    const slow = new Sma(params.slow);
    const crossover = new Crossover();

    return {
      // Called at the close of every bar. An order placed here is filled from the next bar on, and
      // no later bar can be seen. Indicators are NaN until they have had enough bars.
      onBar() {
        const { close } = instrument;
        const crossed = crossover.next(fast.next(close), slow.next(close));
        if (crossed > 0) broker.target(instrument, 1); // all of the equity
        else if (crossed < 0) broker.target(instrument, 0); // out of the market
      },
    };
  },
});
