/** Compares the fast path for a target that is the only working order with the general code. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_RISK_LIMITS, type EngineConfig } from '../../src/engine/config.ts';
import { Engine } from '../../src/engine/engine.ts';
import { bars, ENGINE_DEFAULTS, scripted, type Candle, type Scene } from './market.ts';

const SECOND = 1000;

/** Action of a strategy at one step. */
type Deed =
  | { readonly kind: 'target'; readonly weight: number }
  | { readonly kind: 'limit'; readonly offset: number }
  | { readonly kind: 'market' | 'cancel' | 'nothing' };

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('target' as const),
      weight: fc.constantFrom(0, 0, 1, 1, 0.5, 0.999, 1e-10, 1.5, -0.5),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('limit' as const),
      offset: fc.constantFrom(-0.02, 0, 0.02),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('market', 'cancel', 'nothing', 'nothing') }),
  },
);

/** Each limit is reached by some orders. */
const config: fc.Arbitrary<EngineConfig> = fc
  .record({
    cash: fc.constantFrom(10_000, 0.5),
    fill: fc.constantFrom({ model: 'next_open' as const }, { model: 'ohlc_path' as const }),
    units: fc.constantFrom('fractional' as const, 'whole' as const),
    fees: fc.constantFrom<EngineConfig['fees']>(
      { model: 'none' },
      { model: 'percent', rate: 0.001, min: 0 },
      { model: 'percent', rate: 0.001, min: 30 },
      { model: 'per_share', rate: 0.1, min: 1 },
    ),
    slippage: fc.constantFrom<EngineConfig['slippage']>(
      { model: 'none' },
      { model: 'basis_points', bps: 20 },
    ),
    limits: fc.constantFrom<Partial<EngineConfig['risk']>>(
      {},
      { max_order_value: 9_900 },
      { max_order_qty: 98 },
      { max_position_pct: 0.9 },
      { max_daily_loss_pct: 0.02 },
      { max_drawdown_pct: 0.04 },
      { max_messages_per_second: 1 },
      { max_instruments: 0 },
    ),
  })
  .map(({ limits, ...rest }) => ({
    ...ENGINE_DEFAULTS,
    ...rest,
    risk: { ...NO_RISK_LIMITS, ...limits },
  }));

const change = fc.double({ min: -0.04, max: 0.04, noNaN: true });

function marketOf(changes: readonly (readonly [gap: number, move: number, Deed])[]): Candle[] {
  let price = 100;
  return changes.map(([gap, move]) => {
    const open = price * (1 + gap);
    const close = open * (1 + move);
    price = close;
    return [open, Math.max(open, close) * 1.01, Math.min(open, close) * 0.99, close, 10];
  });
}

it('a lone target has the same events and figures as by the general code', () => {
  const kinds = new Set<string>();
  const step = fc.tuple(change, change, deed);
  const steps = fc.array(step, { minLength: 20, maxLength: 60, size: 'max' });
  fc.assert(
    fc.property(
      config,
      steps,
      fc.integer({ min: 200, max: 90_000 * SECOND }),
      (given, drawn, ms) => {
        const history = bars(marketOf(drawn), undefined, ms);
        const run = (isLone: boolean): string[] => {
          const seen: unknown[] = [];
          const everyBar = (scene: Scene): void => {
            seen.push([scene.broker.cash, scene.broker.equity, act(scene, drawn[scene.step]![2])]);
          };
          const engine = new Engine({
            instruments: [{ symbol: 'X', bars: history }],
            strategy: scripted({ everyBar, onFill: (_, fill) => seen.push(fill) }),
            params: {},
            config: given,
          });
          // Thresholds, even if there are none, need the general code.
          if (!isLone) engine.setThresholds({});
          while (engine.advance(7));
          const { journal, equity, ...rest } = engine.result();
          const events = [...journal.events()];
          for (const event of events) kinds.add('reason' in event ? event.reason : event.kind);
          return [...events, ...equity, rest, engine.risk.state, ...seen].map((line) =>
            JSON.stringify(line),
          );
        };
        expect(run(true)).toEqual(run(false));
      },
    ),
  );
  expect([...kinds]).toEqual(
    expect.arrayContaining([
      'order.filled',
      'quantity_rounds_to_zero',
      'short_not_allowed',
      'max_order_value',
      'max_order_qty',
      'max_position_pct',
      'max_daily_loss_pct',
      'max_drawdown_pct',
      'max_messages_per_second',
      'canceled_by_strategy',
    ]),
  );
});

function act({ broker, instruments, buy, order }: Scene, done: Deed): unknown {
  const market = instruments[0]!;
  switch (done.kind) {
    case 'target':
      return broker.target(market, done.weight);
    case 'market':
      return buy(3);
    case 'limit': {
      const limit = market.close * (1 + done.offset);
      return order({ side: 'buy', quantity: 2, type: 'limit', limit });
    }
    case 'cancel':
      for (const working of broker.working()) broker.cancel(working);
      return undefined;
    case 'nothing':
      return broker.working();
    default:
      return done satisfies never;
  }
}
