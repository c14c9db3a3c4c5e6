/** Limits apply to positions, in whichever order concurrent orders are filled. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig, RiskLimits } from '../../src/engine/config.ts';
import type { Order, OrderRequest } from '../../src/engine/orders/order.ts';
import { runs } from '../length.ts';
import { bars, DAY, flat, MARGIN, play, START } from './market.ts';
import type { Candle, Played, Scene } from './market.ts';

const at = (price: number): Candle => [price, price, price, price];
const limits = (some: Partial<RiskLimits>): Partial<EngineConfig> => ({
  account: MARGIN,
  risk: { ...NO_RISK_LIMITS, ...some },
});
const positionOf = ({ result }: Played): number => result.positions['X'] ?? 0;
const reasons = ({ ends }: Played): unknown[] => ends.map(([, id, , reason]) => [id, reason]);

describe('several orders that each reduce the position', () => {
  it('cannot break a position limit together: 500 long, four sales of 499', () => {
    const run = play({
      bars: bars(flat(5)),
      config: limits({ max_position_pct: 0.5 }),
      script: {
        0: ({ buy }) => buy(500),
        1: ({ sell }) => [sell(499), sell(499), sell(499), sell(499)],
      },
    });
    // The second one may go short by 498, which the limit allows.
    expect(positionOf(run)).toBe(-498);
    expect(reasons(run)).toEqual([
      [4, 'max_position_pct'],
      [5, 'max_position_pct'],
    ]);
  });

  it('do not reverse a position once the loss limit is exceeded', () => {
    const run = play({
      bars: bars([at(100), at(100), at(80), at(80), at(80)]),
      config: limits({ max_drawdown_pct: 0.1 }),
      script: { 0: ({ buy }) => buy(800), 2: ({ sell }) => [sell(800), sell(800)] },
    });
    expect(positionOf(run)).toBe(0);
    expect(reasons(run)).toEqual([[3, 'max_drawdown_pct']]);
  });

  it('may close in parts that add up to the position, rounding errors included', () => {
    const run = play({
      bars: bars([at(100), at(100), at(80), at(80), at(80)]),
      config: { cash: 40, ...limits({ max_drawdown_pct: 0.1 }) },
      script: {
        0: ({ buy }) => buy(0.3),
        2: ({ sell }) => [sell(0.1), sell(0.1), sell(0.1), sell(0.01)],
      },
    });
    expect(positionOf(run)).toBe(0);
    expect(reasons(run)).toEqual([[5, 'max_drawdown_pct']]);
  });

  it('count the remaining quantity of a partly filled order', () => {
    const low = (volume: number): Candle => [80, 80, 80, 80, volume];
    const run = play({
      bars: bars([at(100), [100, 100, 100, 100, 8000], low(0), low(2000), low(9000), low(9000)]),
      config: { ...limits({ max_drawdown_pct: 0.1 }), fill: { model: 'volume_share', limit: 0.1 } },
      script: {
        0: ({ buy }) => buy(800),
        2: ({ sell }) => sell(500),
        // 200 of the 500 have been sold by now.
        3: ({ sell }) => [sell(301), sell(300)],
      },
    });
    expect(positionOf(run)).toBe(0);
    expect(reasons(run)).toEqual([[3, 'max_drawdown_pct']]);
  });
});

describe('once the loss limit is exceeded', () => {
  /** 800 bought by `entry` at 100; the price is 80 from the third bar on, at which `exit` runs. */
  const leave = (
    exit: (scene: Scene) => unknown,
    { rest = [], ...entry }: Partial<OrderRequest> & { readonly rest?: readonly Candle[] } = {},
  ): Played =>
    play({
      bars: bars([at(100), at(100), at(80), ...rest, at(80), at(80)]),
      config: limits({ max_drawdown_pct: 0.1 }),
      script: { 0: ({ buy }) => buy(800, entry), 2: exit },
    });

  it.each<[string, (scene: Scene) => unknown]>([
    ['by one order', ({ sell }) => sell(800)],
    ['by a target', ({ broker, instruments: [x] }) => broker.target(x!, 0)],
    [
      'by a target that replaces another',
      ({ broker, instruments: [x] }) => [broker.target(x!, 0.1), broker.target(x!, 0)],
    ],
    [
      'by a one-cancels-other pair',
      ({ sell }) => [
        sell(800, { type: 'limit', limit: 79, ocoGroup: 1 }),
        sell(800, { type: 'stop', stop: 60, ocoGroup: 1 }),
      ],
    ],
    [
      'by an exit in place of another',
      ({ broker, sell }) => {
        broker.cancel(sell(800, { type: 'limit', limit: 200 }));
        sell(800);
      },
    ],
    [
      'beside a reduce-only stop',
      ({ sell }) => [sell(800, { type: 'stop', stop: 60, reduceOnly: true }), sell(800)],
    ],
    [
      'by a target beside a stop',
      ({ sell, broker, instruments: [x] }) => [
        sell(800, { type: 'stop', stop: 60 }),
        broker.target(x!, 0),
      ],
    ],
  ])('a position of 800 can be closed %s', (_, exit) => {
    const run = leave(exit);
    expect(positionOf(run)).toBe(0);
    expect(run.result.orders.denied).toEqual({});
  });

  it('a position can be closed by an order while the exits of its bracket are working', () => {
    const run = leave(({ sell }) => sell(800), { stopLoss: 50, takeProfit: 200 });
    expect(positionOf(run)).toBe(0);
    expect(run.result.orders.denied).toEqual({});
  });

  // The price falls through the stops and returns to the limit of the sell order.
  const rest = [
    [80, 80, 70, 70],
    [90, 95, 90, 90],
  ] as const;

  it('the part of a position that its stop has closed is not sold again', () => {
    const byHand = ({ sell }: Scene): unknown => sell(800, { type: 'limit', limit: 90 });
    const run = leave(byHand, { stopLoss: 75, rest });
    expect(positionOf(run)).toBe(0);
    expect(run.fills.length).toBe(2);
    expect(run.ends).toEqual([[4, 3, 'denied', 'max_drawdown_pct']]);
  });

  it('the rest of a position is sold if a stop has closed a part', () => {
    const run = leave(
      ({ sell }) => [
        sell(500, { type: 'stop', stop: 75, reduceOnly: true }),
        sell(800, { type: 'limit', limit: 90 }),
      ],
      { rest },
    );
    expect(run.fills.slice(1)).toEqual([
      [3, 2, -500, 75],
      [4, 3, -300, 90],
    ]);
    expect(run.ends).toEqual([[4, 3, 'canceled', 'max_drawdown_pct']]);
    expect(run.result.orders.limited).toEqual({ max_drawdown_pct: 1 });
  });
});

describe('a target', () => {
  it('counts as the resulting position, beside an order of the same side', () => {
    const run = play({
      bars: bars(flat(4)),
      config: limits({ max_position_pct: 0.5 }),
      script: {
        0: ({ broker, instruments: [x], buy }) => [broker.target(x!, 0.5), buy(1)],
      },
    });
    expect(positionOf(run)).toBe(500);
    expect(reasons(run)).toEqual([[2, 'max_position_pct']]);
  });
});

describe('a target of zero that is filled in parts', () => {
  it('sells no more than the remaining position if another order sells, too', () => {
    const thin = (low: number, volume: number): Candle => [100, 100, low, 100, volume];
    const run = play({
      bars: bars([at(100), thin(100, 1000), thin(100, 20), thin(93, 10), thin(100, 1000)]),
      config: { account: MARGIN, fill: { model: 'volume_share', limit: 0.1 } },
      script: {
        0: ({ buy }) => buy(5),
        1: ({ broker, sell, instruments: [x] }) => [
          sell(1, { type: 'stop', stop: 94 }),
          broker.target(x!, 0),
        ],
      },
    });
    expect(run.fills.slice(1)).toEqual([
      [2, 3, -2, 100],
      [3, 3, -1, 100],
      [4, 2, -1, 100],
      [4, 3, -1, 100],
    ]);
    expect(run.result.orders).toMatchObject({ filled: 3, working: 0 });
  });
});

describe('the threshold for all positions together', () => {
  it.each<[string, (scene: Scene) => unknown]>([
    ['a reduce-only order', ({ order }) => order({ side: 'buy', quantity: 3, reduceOnly: true })],
    ['a target of none', ({ broker, instruments: [x] }) => broker.target(x!, 0)],
  ])('limits an order that increases the exposure after %s was filled', (_, close) => {
    const run = play({
      bars: {
        X: bars([at(100), at(100), at(100), [100, 100, 90, 95], at(95)]),
        Y: bars(flat(5)),
      },
      config: { account: MARGIN },
      thresholds: { max_gross_exposure: { value: 1500 } },
      script: {
        0: ({ buy, sell }) => [sell(3), buy(10, { type: 'limit', limit: 93 })],
        // X is 3 short and may become 7 long.
        1: ({ buy, instruments: [, y] }) => buy(7, { instrument: y! }),
        2: close,
      },
    });
    expect(run.result.positions).toEqual({ Y: 7 });
    expect(reasons(run)).toEqual([[2, 'threshold_gross_exposure']]);
  });
});

it('a target counts alone, and not with the larger one that it replaces', () => {
  const run = play({
    bars: {
      X: bars([at(100), at(100)], START, 4 * DAY),
      Y: bars([at(100), at(100), at(150), at(150), at(150)]),
    },
    config: { account: MARGIN },
    thresholds: { instruments: { X: { max_gross_exposure: { value: 45_000 } } } },
    script: {
      0: ({ broker, buy, instruments: [x, y] }) => {
        broker.target(x!, 0.4);
        buy(500, { instrument: y! });
      },
      // With the equity of 125,000, the larger target would exceed the threshold now.
      2: ({ broker, instruments: [x] }) => broker.target(x!, 0.3),
    },
  });
  expect(run.result.positions).toEqual({ X: 375, Y: 500 });
});

describe('for any orders and fills', () => {
  /** The most units, at 100 each, that `max_position_pct` of 10⁹ allows. */
  const MOST = 10;
  const LOST = 3;

  const deed = fc.record({
    kind: fc.constantFrom('order', 'order', 'order', 'target', 'cancel'),
    side: fc.constantFrom('buy' as const, 'sell' as const),
    type: fc.constantFrom(
      'market' as const,
      'market' as const,
      'limit' as const,
      'stop' as const,
      'trailing_stop' as const,
    ),
    quantity: fc.constantFrom(1, 3, 5, 8, 10, 0.3),
    offset: fc.constantFrom(-7, -4, 4, 7),
    reduceOnly: fc.constantFrom(false, false, true),
    bracket: fc.constantFrom(undefined, { stopLoss: 96, takeProfit: 104 }),
    ocoGroup: fc.constantFrom(0, 0, 1),
    units: fc.integer({ min: -MOST, max: MOST }),
  });
  type Deed = typeof deed extends fc.Arbitrary<infer T> ? T : never;

  const act = (
    { broker, instruments: [x], order }: Scene,
    { kind, units, type, offset, bracket, ...request }: Deed,
  ): Readonly<Order> | undefined => {
    if (kind === 'cancel') {
      const working = broker.working(x)[Math.abs(units)];
      if (working !== undefined) broker.cancel(working);
      return undefined;
    }
    if (kind === 'target') return broker.target(x!, (units * 100) / broker.equity);
    return order({
      ...request,
      ...bracket,
      type,
      ...(type === 'limit' && { limit: 100 + offset }),
      ...(type === 'stop' && { stop: 100 + offset }),
      ...(type === 'trailing_stop' && { trail: Math.abs(offset) }),
    });
  };

  /** A few more than `days`; they reach all prices and end at the first price. */
  const ups = (days: readonly unknown[], volume: number): Candle[] =>
    Array.from({ length: days.length + 4 }, () => [100, 108, 92, 100, volume]);

  const always = (
    claim: (days: readonly (readonly Deed[])[], fill: EngineConfig['fill'], volume: number) => void,
  ): void =>
    fc.assert(
      fc.property(
        fc.array(fc.array(deed, { maxLength: 4 }), { minLength: 2, maxLength: 12 }),
        fc.constantFrom<EngineConfig['fill'][]>(
          { model: 'next_open' },
          { model: 'ohlc_path' },
          { model: 'volume_share', limit: 0.1 },
        ),
        fc.constantFrom(25, 1000),
        claim,
      ),
      { numRuns: runs(400) },
    );

  it('no position is beyond max_position_pct', () => {
    always((days, fill, volume) => {
      const run = play({
        bars: bars(ups(days, volume)),
        // With this much cash, profits and losses of the orders do not change any share of it.
        config: { cash: 1e12, fill, ...limits({ max_position_pct: (MOST * 100) / 1e12 }) },
        everyBar: (scene) => {
          for (const one of days[scene.step] ?? []) act(scene, one);
        },
      });
      for (const event of run.events) {
        if (event.kind !== 'order.filled') continue;
        expect(Math.abs(event.position)).toBeLessThanOrEqual(MOST * (1 + 1e-6));
      }
    });
  });

  it('an order placed after a loss limit only reduces positions', () => {
    always((days, fill, volume) => {
      const late = new Set<number>();
      const x = ups(days, volume);
      const run = play({
        // Y falls, and takes half of equity along.
        bars: {
          X: bars(x),
          Y: bars(x.map((_, step) => [...at(step < LOST ? 100 : 50).slice(0, 4), 1e12] as never)),
        },
        config: {
          cash: 1e9,
          fill,
          account: { model: 'margin', initial: 0.1, maintenance: 0.01 },
          risk: { ...NO_RISK_LIMITS, max_drawdown_pct: 0.1 },
        },
        everyBar: (scene) => {
          if (scene.step === 0) scene.buy(9.9e6, { instrument: scene.instruments[1]! });
          for (const one of days[scene.step] ?? []) {
            const order = act(scene, one);
            if (order !== undefined && scene.step >= LOST) late.add(order.id);
          }
        },
      });
      let position = 0;
      for (const event of run.events) {
        if (event.kind !== 'order.filled' || event.symbol !== 'X') continue;
        if (late.has(event.order)) {
          expect(Math.abs(event.position)).toBeLessThan(Math.abs(position));
          expect(event.position * position).toBeGreaterThanOrEqual(0);
        }
        position = event.position;
      }
    });
  });
});
