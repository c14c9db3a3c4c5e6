import { defineStrategy, integer, number, Rsi, Sma } from 'service-local/strategy';

/**
 * Buys a short fall within a long rise. A bracket places both exits with the entry; the exit that is
 * reached first cancels the other.
 */
export default defineStrategy({
  name: 'pullback',
  description: 'Buys short falls in a long rise, with a target and a stop.',
  params: {
    trend: integer({
      default: 200,
      min: 2,
      description: 'Bars of the average that shows the rise.',
    }),
    period: integer({ default: 3, min: 2, description: 'Bars of the RSI that shows the fall.' }),
    lower: number({
      default: 20,
      min: 0,
      max: 100,
      description: 'Buys when the RSI is below this.',
    }),
    profit: number({ default: 0.04, min: 0.001, max: 1, description: 'Target above the entry.' }),
    loss: number({ default: 0.02, min: 0.001, max: 0.5, description: 'Stop below the entry.' }),
    share: number({
      default: 0.95,
      min: 0.01,
      max: 1,
      description: 'Share of the equity to buy for.',
    }),
  },
  instruments: { min: 1, max: 1 },

  create({ params, instruments, broker }) {
    const instrument = instruments[0];
    const trend = new Sma(params.trend);
    const rsi = new Rsi(params.period);
    return {
      onBar() {
        const { close } = instrument;
        // Indicators need every bar, in or out of the market. They are NaN until they have enough bars.
        const rises = close > trend.next(close);
        const fell = rsi.next(close) < params.lower;
        if (!rises || !fell || broker.position(instrument) > 0) return;
        // The quantity must be affordable at the next open, including the fee. So it uses less than all.
        broker.order({
          instrument,
          side: 'buy',
          quantity: (params.share * broker.equity) / close,
          takeProfit: { percent: params.profit },
          stopLoss: { percent: params.loss },
        });
      },
    };
  },
});
