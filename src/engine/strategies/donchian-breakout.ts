import { lag } from '../indicators/arithmetic.ts';
import { donchian } from '../indicators/donchian.ts';
import { integer } from '../params.ts';
import { above, any, below } from '../series/condition.ts';
import { defineStrategy } from '../strategy.ts';

/**
 * Long side of the Turtle rules. Invests all equity when a close is above the highest high of the
 * `entry` bars before it, and sells when one is below the lowest low of the `exit` bars before it.
 */
export const donchianBreakout = defineStrategy({
  name: 'donchian_breakout',
  description:
    'Buys when a close is above all recent highs; sells when one is below all recent lows.',
  params: {
    entry: integer({ default: 20, min: 1, description: 'Number of bars whose highs count.' }),
    exit: integer({ default: 10, min: 1, description: 'Number of bars whose lows count.' }),
  },
  instruments: { min: 1, max: 1 },
  // The channels must not include the bar that breaks out of them.
  indicators: ({ params, instruments: [asset] }) => ({
    close: asset.close,
    upper: lag(donchian(asset, params.entry).upper, 1),
    lower: lag(donchian(asset, params.exit).lower, 1),
  }),
  wakeOn: ({ close, upper, lower }) => any(above(close, upper), below(close, lower)),
  create({ instruments: [asset], indicators: { upper, lower }, broker }) {
    return {
      onBar() {
        const held = broker.position(asset) > 0;
        if (!held && asset.close > upper.value) broker.target(asset, 1);
        else if (held && asset.close < lower.value) broker.target(asset, 0);
      },
    };
  },
});
