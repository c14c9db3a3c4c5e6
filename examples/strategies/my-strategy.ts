import {
  crossedAbove,
  crossedBelow,
  crossing,
  defineStrategy,
  integer,
  sma,
} from 'service-local/strategy';

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

  // Computed for every bar. They are NaN until they have had enough bars.
  indicators: ({ params, instruments: [asset] }) => ({
    fast: sma(asset.close, params.fast),
    slow: sma(asset.close, params.slow),
  }),

  // Other bars need no decision, which makes a backtest faster. Without this line, `onBar` is called
  // at every bar.
  wakeOn: ({ fast, slow }) => crossing(fast, slow),

  // Called once for each run. Variables here belong to that run alone.
  create({ instruments: [asset], indicators: { fast, slow }, broker }) {
    return {
      // Called at the close of a bar. An order placed here is filled from the next bar on, and no
      // later bar can be seen.
      onBar() {
        if (crossedAbove(fast, slow)) broker.target(asset, 1); // all of the equity
        else if (crossedBelow(fast, slow)) broker.target(asset, 0); // out of the market
      },
    };
  },
});
