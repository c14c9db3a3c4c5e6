import fc from 'fast-check';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig } from '../../src/engine/config.ts';
import { ORDER_TYPES, TIMES_IN_FORCE } from '../../src/engine/orders/order.ts';
import type { ExitPrice, OrderType, TimeInForce } from '../../src/engine/orders/order.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';
import type { Fill } from '../../src/engine/strategy.ts';
import { play, START } from './market.ts';
import type { Play, Played, Scene } from './market.ts';

/** Four bars a day, so that days begin and end within a scenario. */
export const STEP = 21_600_000;

/** Prices are whole numbers, so that touches, gaps and ties are common. */
interface Move {
  readonly gap: number;
  readonly up: number;
  readonly down: number;
  /** Position of the close between low and high. */
  readonly close: number;
  readonly volume: number;
  /** Steps until the next bar of this market. */
  readonly pause: number;
}

/** An action of a strategy at a step; prices are offsets from the last close. */
export type Deed =
  | {
      readonly kind: 'order';
      readonly market: number;
      readonly side: 'buy' | 'sell';
      readonly type: OrderType;
      readonly quantity: number;
      readonly limit: number;
      readonly stop: number;
      readonly trail: ExitPrice;
      readonly timeInForce: TimeInForce;
      readonly postOnly: boolean;
      readonly reduceOnly: boolean;
      readonly takeProfit: ExitPrice | undefined;
      readonly stopLoss: ExitPrice | undefined;
      readonly ocoGroup: number;
    }
  | { readonly kind: 'target'; readonly market: number; readonly weight: number }
  | { readonly kind: 'cancel'; readonly which: number };

export interface Scenario {
  readonly markets: readonly (readonly Move[])[];
  /** One list per step, used in turn. */
  readonly onBar: readonly (readonly Deed[])[];
  /** One list per fill, used in turn. */
  readonly onFill: readonly (readonly Deed[])[];
  readonly config: Partial<EngineConfig>;
  /** Replaces the last close before the first bar. */
  readonly base: number;
}

/** One bar. */
export const move: fc.Arbitrary<Move> = fc.record({
  gap: fc.integer({ min: -3, max: 3 }),
  up: fc.integer({ min: 0, max: 4 }),
  down: fc.integer({ min: 0, max: 4 }),
  close: fc.constantFrom(0, 0.5, 1),
  volume: fc.constantFrom(0, 10, 40, 1000),
  pause: fc.constantFrom(1, 1, 1, 2, 5),
});

const exit: fc.Arbitrary<ExitPrice | undefined> = fc.option(
  fc.oneof(
    fc.integer({ min: 40, max: 60 }),
    fc.constantFrom(0.02, 0.05).map((percent) => ({ percent })),
  ),
  { nil: undefined },
);

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('order' as const),
      market: fc.nat(2),
      side: fc.constantFrom('buy' as const, 'sell' as const),
      type: fc.constantFrom(...ORDER_TYPES),
      quantity: fc.constantFrom(1, 2, 5, 10, 7.5, 0.3),
      limit: fc.integer({ min: -3, max: 3 }),
      stop: fc.integer({ min: -3, max: 3 }),
      trail: fc.constantFrom<ExitPrice[]>(1, 2, { percent: 0.03 }),
      timeInForce: fc.constantFrom('gtc' as const, 'gtc' as const, ...TIMES_IN_FORCE),
      postOnly: fc.boolean(),
      reduceOnly: fc.constantFrom(false, false, true),
      takeProfit: exit,
      stopLoss: exit,
      ocoGroup: fc.constantFrom(0, 0, 0, 1, 2),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('target' as const),
      market: fc.nat(2),
      weight: fc.constantFrom(-1, -0.4, 0, 0.25, 0.5, 1, 2),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(3) }) },
);

const config: fc.Arbitrary<Partial<EngineConfig>> = fc.record({
  cash: fc.constantFrom(300, 2000),
  fill: fc.constantFrom<EngineConfig['fill'][]>(
    { model: 'next_open' },
    { model: 'ohlc_path' },
    { model: 'volume_share', limit: 0.1 },
  ),
  units: fc.constantFrom('fractional', 'whole'),
  fees: fc.constantFrom<EngineConfig['fees'][]>(
    { model: 'none' },
    { model: 'percent', rate: 0.001, min: 0 },
    { model: 'percent', rate: 0.001, min: 0.5 },
    { model: 'per_share', rate: 0.01, min: 0.2 },
  ),
  slippage: fc.constantFrom<EngineConfig['slippage'][]>(
    { model: 'none' },
    { model: 'basis_points', bps: 20 },
    { model: 'volume_share', impact: 0.1 },
  ),
  account: fc.constantFrom<EngineConfig['account'][]>(
    { model: 'cash' },
    { model: 'margin', initial: 0.5, maintenance: 0.3 },
  ),
  risk: fc.constantFrom(NO_RISK_LIMITS, {
    ...NO_RISK_LIMITS,
    max_order_value: 600,
    max_messages_per_second: 3,
    max_position_pct: 0.8,
    max_daily_loss_pct: 0.1,
    max_drawdown_pct: 0.3,
    max_instruments: 2,
  }),
  optionalLimits: fc.constantFrom<EngineConfig['optionalLimits'][]>(undefined, {
    price_collar_period: { seconds: 3 * 86_400, bps: 500 },
    repeated_execution: { count: 8, seconds: 20 * 86_400 },
  }),
});

const moves = fc.array(move, { minLength: 2, maxLength: 30 });
const deeds = fc.array(deed, { maxLength: 3 });

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  markets: fc.array(moves, { minLength: 1, maxLength: 3 }),
  onBar: fc.array(deeds, { minLength: 1, maxLength: 30 }),
  onFill: fc.oneof(fc.constant([[]]), fc.array(deeds, { minLength: 1, maxLength: 6 })),
  config,
  base: fc.constant(50),
});

function barsOf(market: readonly Move[]): Bars {
  let time = START + (market[0]!.pause - 1) * STEP;
  let last = 50;
  return barsFromRows(
    market.map(({ gap, up, down, close, volume, pause }) => {
      const open = Math.max(5, last + gap);
      const low = Math.max(1, open - down);
      const high = open + up;
      last = Math.max(low, Math.min(high, Math.round(low + close * (high - low))));
      const row = [time, open, high, low, last, volume] as const;
      time += pause * STEP;
      return row;
    }),
  );
}

export function namedMarkets(markets: readonly (readonly Move[])[]): Record<string, Bars> {
  return Object.fromEntries(markets.map((market, i) => [`M${i}`, barsOf(market)]));
}

export function enact(
  drawn: Scenario,
  markets: Readonly<Record<string, Bars>>,
  slice?: Play['slice'],
  meddle?: (scene: Scene, fill?: Fill) => void,
): Played {
  return play({
    bars: markets,
    config: drawn.config,
    ...scriptOf(drawn, meddle),
    ...(slice !== undefined && { slice }),
  });
}

/** Script of a strategy that takes these actions, with `meddle` called at each bar and fill. */
export function scriptOf(
  { onBar, onFill, base }: Pick<Scenario, 'onBar' | 'onFill' | 'base'>,
  meddle?: (scene: Scene, fill?: Fill) => void,
): Required<Pick<Play, 'everyBar' | 'onFill'>> {
  let fills = 0;
  return {
    everyBar: (scene) => {
      for (const one of onBar[scene.step % onBar.length]!) act(scene, one, base);
      meddle?.(scene);
    },
    onFill: (scene, fill) => {
      meddle?.(scene, fill);
      // Limited, because fills can lead to more fills without end.
      if (++fills > 20) return;
      for (const one of onFill[fills % onFill.length]!) act(scene, one, base);
    },
  };
}

function act({ broker, instruments }: Scene, one: Deed, firstBase: number): void {
  if (one.kind === 'cancel') {
    const order = broker.working()[one.which];
    if (order !== undefined) broker.cancel(order);
    return;
  }
  const instrument = instruments[one.market % instruments.length]!;
  if (one.kind === 'target') {
    broker.target(instrument, one.weight);
    return;
  }
  const { type, takeProfit, stopLoss } = one;
  const base = Number.isNaN(instrument.close) ? firstBase : instrument.close;
  broker.order({
    instrument,
    side: one.side,
    type,
    quantity: one.quantity,
    timeInForce: one.timeInForce,
    reduceOnly: one.reduceOnly,
    ocoGroup: one.ocoGroup,
    ...((type === 'limit' || type === 'stop_limit') && { limit: Math.max(1, base + one.limit) }),
    ...((type === 'stop' || type === 'stop_limit') && { stop: Math.max(1, base + one.stop) }),
    ...(type === 'trailing_stop' && { trail: one.trail }),
    ...(type === 'limit' && { postOnly: one.postOnly }),
    ...(takeProfit !== undefined && { takeProfit }),
    ...(stopLoss !== undefined && { stopLoss }),
  });
}
