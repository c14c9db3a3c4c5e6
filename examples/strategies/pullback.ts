import {
  above,
  all,
  below,
  defineStrategy,
  integer,
  number,
  rsi,
  sma,
} from 'service-local/strategy';

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

  indicators: ({ params, instruments: [asset] }) => ({
    close: asset.close,
    trend: sma(asset.close, params.trend),
    strength: rsi(asset.close, params.period),
  }),
  // `onBar` is called at bars that meet this condition, and after orders are filled or end.
  wakeOn: ({ close, trend, strength }, { lower }) =>
    all(above(close, trend), below(strength, lower)),

  create({ params, instruments: [asset], indicators: { trend, strength }, broker }) {
    return {
      onBar() {
        const { close } = asset;
        const rises = close > trend.value;
        const fell = strength.value < params.lower;
        if (!rises || !fell || broker.position(asset) > 0) return;
        // The quantity must be affordable at the next open, including the fee. So it uses less than all.
        broker.order({
          instrument: asset,
          side: 'buy',
          quantity: (params.share * broker.equity) / close,
          takeProfit: { percent: params.profit },
          stopLoss: { percent: params.loss },
        });
      },
    };
  },
});
