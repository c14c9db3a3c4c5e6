import { rsi } from '../indicators/rsi.ts';
import { number, integer } from '../params.ts';
import { above, any, below } from '../series/condition.ts';
import { defineStrategy } from '../strategy.ts';

/** Buys with all equity if Wilder's RSI of the closes is below `lower`; sells above `upper`. */
export const rsiReversion = defineStrategy({
  name: 'rsi_reversion',
  description: 'Buys what fell too fast and sells it when it has risen again.',
  params: {
    period: integer({ default: 14, min: 2, description: 'Bars of the relative strength index.' }),
    lower: number({ default: 30, min: 0, max: 100, description: 'Buys below this.' }),
    upper: number({ default: 70, min: 0, max: 100, description: 'Sells above this.' }),
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
