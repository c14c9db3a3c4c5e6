import { rsi } from '../indicators/rsi.ts';
import { number, integer } from '../params.ts';
import { above, any, below } from '../series/condition.ts';
import { defineStrategy } from '../strategy.ts';

/** Buys with all equity if Wilder's RSI of the closes is below `lower`; sells above `upper`. */
export const rsiReversion = defineStrategy({
  name: 'rsi_reversion',
  description: 'Buys when the relative strength index is low and sells when it is high.',
  params: {
    period: integer({
      default: 14,
      min: 2,
      description: 'Number of bars of the relative strength index.',
    }),
    lower: number({
      default: 30,
      min: 0,
      max: 100,
      description: 'Buys when the index is below this value.',
    }),
    upper: number({
      default: 70,
      min: 0,
      max: 100,
      description: 'Sells when the index is above this value.',
    }),
  },
  instruments: { min: 1, max: 1 },
  check: ({ lower, upper }) => (lower < upper ? undefined : 'lower must be below upper'),
  indicators: ({ params, instruments: [asset] }) => rsi(asset.close, params.period),
  wakeOn: (strength, { lower, upper }) => any(below(strength, lower), above(strength, upper)),
  create({ params, instruments: [asset], indicators: strength, broker }) {
    return {
      onBar() {
        const held = broker.position(asset) > 0;
        if (!held && strength.value < params.lower) broker.target(asset, 1);
        else if (held && strength.value > params.upper) broker.target(asset, 0);
      },
    };
  },
});
