import {
  crossedAbove,
  crossedBelow,
  crossing,
  defineStrategy,
  integer,
  number,
  sma,
} from 'service-local/strategy';

/**
 * Follows the weekly trend with daily orders. With a calendar, a week is complete at the close of
 * its last session, and a day order ends with its session.
 */
export default defineStrategy({
  name: 'weekly_trend',
  description: 'Holds while the weekly close is above its average; buys with day orders.',
  params: {
    weeks: integer({ default: 20, min: 2, description: 'Length of the average in weeks.' }),
    share: number({
      default: 0.95,
      min: 0.01,
      max: 1,
      description: 'Share of the equity to buy for.',
    }),
  },
  instruments: { min: 1, max: 1 },

  indicators({ params, instruments: [asset] }) {
    const week = asset.on('1w');
    return { close: week.close, average: sma(week.close, params.weeks) };
  },
  wakeOn: ({ close, average }) => crossing(close, average),

  create({ params, instruments: [asset], indicators: { close, average }, broker }) {
    let isRising = false;
    return {
      onBar() {
        if (crossedAbove(close, average)) isRising = true;
        else if (crossedBelow(close, average)) {
          isRising = false;
          for (const order of broker.working(asset)) broker.cancel(order);
          broker.target(asset, 0);
        }
        // When a day order ends unfilled, `onBar` is called again.
        const isFlat = broker.position(asset) === 0 && broker.working(asset).length === 0;
        if (!isRising || !isFlat) return;
        broker.order({
          instrument: asset,
          side: 'buy',
          quantity: (params.share * broker.equity) / asset.close,
          type: 'limit',
          limit: asset.close,
          timeInForce: 'day',
        });
      },
    };
  },
});
