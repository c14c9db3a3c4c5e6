import { Donchian } from '../indicators/donchian.ts';
import { integer } from '../params.ts';
import { defineStrategy } from '../strategy.ts';

/**
 * Buys all in when a close lies above the highest high of the `entry` bars before it, sells when one
 * lies below the lowest low of the `exit` bars before it (the long side of the Turtle rules).
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
    const instrument = instruments[0]!;
    const entry = new Donchian(params.entry);
    const exit = new Donchian(params.exit);
    return {
      onBar() {
        const { close, high, low } = instrument;
        // The channels must not hold the bar that breaks out of them.
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
