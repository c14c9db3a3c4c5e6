import type { Instrument } from '../../src/engine/instrument.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';

/**
 * Trades often and in every way: market, limit, stop and bracket orders, targets and cancels, by the
 * random source of the run.
 */
export const RESTLESS = defineStrategy({
  name: 'restless',
  description: 'Places and cancels orders of all kinds at random.',
  params: {},
  create(context) {
    const { broker, instruments } = context;
    const random = (): number => context.random();
    const below = (count: number): number => Math.floor(random() * count);
    const act = (instrument: Instrument): void => {
      const price = Number((instrument.close * (1 + (random() - 0.5) / 100)).toFixed(2));
      const held = broker.position(instrument);
      const working = broker.working(instrument);
      const isSale = held > 0.2 && random() < 0.5;
      const most = (1 + below(20)) / 10;
      const side = isSale ? 'sell' : 'buy';
      const order = { instrument, side, quantity: isSale ? Math.min(held, most) : most } as const;
      const kind = below(8);
      if (kind === 0) broker.order(order);
      else if (kind === 1) broker.target(instrument, below(4) / 10);
      else if (kind <= 3) broker.order({ ...order, type: 'limit', limit: price });
      else if (kind === 4) broker.order({ ...order, type: 'stop', stop: price });
      else if (kind === 5) {
        const exits = { takeProfit: { percent: 0.004 }, stopLoss: { percent: 0.004 } };
        broker.order({ ...order, side: 'buy', ...exits });
      } else if (working.length > 0) broker.cancel(working[below(working.length)]!);
    };
    return {
      onBar() {
        for (const instrument of instruments) {
          for (let acts = 2 + below(4); acts > 0; acts -= 1) act(instrument);
        }
      },
    };
  },
});
