/** A strategy that orders at random where averages cross, for a comparison of runs with and without `wakeOn`. */
import {
  choice,
  crossedAbove,
  crossedBelow,
  Crossover,
  crossing,
  defineStrategy,
  every,
  integer,
  Sma,
  sma,
  type Order,
  type OrderRequest,
} from 'service-local/strategy';

const TYPES = ['market', 'limit', 'stop', 'stop_limit', 'trailing_stop'] as const;
const LIFETIMES = ['day', 'gtc', 'ioc', 'fok'] as const;
/** Plain whole numbers that depend on the seed and the number of the draw only. */
const drawn = (seed: number, draw: number, below: number): number =>
  Math.floor(Math.abs(Math.sin(seed * 12.9898 + draw * 78.233) * 43_758.5453)) % below;

export default defineStrategy({
  name: 'random_orders',
  description: 'Orders of every type where averages cross.',
  params: {
    seed: integer({ default: 1 }),
    mode: choice({ default: 'own', choices: ['own', 'declared', 'waking'] }),
  },
  instruments: { min: 1, max: 3 },
  shorts: true,
  indicators: ({ instruments: [first] }) => ({
    fast: sma(first.close, 2),
    slow: sma(first.close, 5),
  }),
  wakeOn: ({ fast, slow }, { mode }) => (mode === 'waking' ? crossing(fast, slow) : every(1)),
  create({ instruments, indicators: { fast, slow }, params: { seed, mode }, broker }) {
    const [first] = instruments;
    const [ownFast, ownSlow, crossover] = [new Sma(2), new Sma(5), new Crossover()];
    const orders: Order[] = [];
    let draws = 0;
    const draw = (below: number): number => drawn(seed, (draws += 1), below);

    function crosses(): boolean {
      if (mode !== 'own') return crossedAbove(fast, slow) || crossedBelow(fast, slow);
      return (
        first.fresh && crossover.next(ownFast.next(first.close), ownSlow.next(first.close)) !== 0
      );
    }

    function request(): OrderRequest {
      const instrument = instruments[draw(instruments.length)]!;
      const type = TYPES[draw(TYPES.length)]!;
      const side = draw(2) === 0 ? 'buy' : 'sell';
      const price = (): number => instrument.close * (0.98 + draw(40) / 1000);
      return {
        instrument,
        side,
        type,
        quantity: 50 + draw(400),
        timeInForce: LIFETIMES[draw(type === 'market' || type === 'limit' ? 4 : 2)]!,
        ...(type.endsWith('limit') && { limit: price() }),
        ...(type.startsWith('stop') && { stop: price() }),
        ...(type === 'trailing_stop' && { trail: { percent: 0.01 } }),
        ...(draw(3) === 0 && { takeProfit: { percent: 0.02 }, stopLoss: { percent: 0.02 } }),
        ...(draw(4) === 0 && { ocoGroup: 1 }),
      };
    }

    return {
      onBar() {
        if (!crosses()) return;
        if (draw(4) === 0) broker.target(instruments[draw(instruments.length)]!, (draw(5) - 2) / 2);
        else if (draw(5) === 0 && orders.length > 0) broker.cancel(orders[draw(orders.length)]!);
        else orders.push(broker.order(request()));
      },
    };
  },
});
