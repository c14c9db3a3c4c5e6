import { Rsi } from '../indicators/rsi.ts';
import { number, integer } from '../params.ts';
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
  create({ params, instruments, broker }) {
    const instrument = instruments[0];
    const rsi = new Rsi(params.period);
    return {
      onBar() {
        const strength = rsi.next(instrument.close);
        const held = broker.position(instrument) > 0;
        if (!held && strength < params.lower) broker.target(instrument, 1);
        else if (held && strength > params.upper) broker.target(instrument, 0);
      },
    };
  },
});
