import { Donchian } from '../indicators/donchian.ts';
import { integer } from '../params.ts';
import { defineStrategy } from '../strategy.ts';

/**
 * Long side of the Turtle rules. Invests all equity when a close is above the highest high of the
 * `entry` bars before it, and sells when one is below the lowest low of the `exit` bars before it.
 */
export const donchianBreakout = defineStrategy({
  name: 'donchian_breakout',
  description:
    'Buys a close above the channel of recent highs, sells one below that of recent lows.',
  params: {
    entry: integer({ default: 20, min: 1, description: 'Bars of the channel of highs.' }),
    exit: integer({ default: 10, min: 1, description: 'Bars of the channel of lows.' }),
  },
  instruments: { min: 1, max: 1 },
  create({ params, instruments, broker }) {
    const instrument = instruments[0];
    const entry = new Donchian(params.entry);
    const exit = new Donchian(params.exit);
    return {
      onBar() {
        const { close, high, low } = instrument;
        // Read first, because the channels must not include the bar that breaks out of them.
        const { upper } = entry;
        const { lower } = exit;
        entry.next(high, low);
        exit.next(high, low);
        const held = broker.position(instrument) > 0;
        if (!held && close > upper) broker.target(instrument, 1);
        else if (held && close < lower) broker.target(instrument, 0);
      },
    };
  },
});
