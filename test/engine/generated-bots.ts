import fc from 'fast-check';
import { OVERRIDABLE_LIMITS } from '../../src/base/risk-limits.ts';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig, OptionalLimits, RiskLimits } from '../../src/engine/config.ts';
import { ORDER_TYPES, TIMES_IN_FORCE } from '../../src/engine/orders/order.ts';
import type { DenyReason, ExitPrice, TimeInForce } from '../../src/engine/orders/order.ts';
import type { Opening } from '../../src/engine/portfolio.ts';
import type { Threshold, Thresholds } from '../../src/engine/risk/firm-thresholds.ts';
import type { Permit } from '../../src/engine/risk/permits.ts';
import type { MarketPhase, VenueRules } from '../../src/engine/execution/venue-protocol.ts';
import { ENGINE_DEFAULTS, START } from './market.ts';
import { replies } from './simulated-venue.ts';
import type { Reply } from './simulated-venue.ts';
import { move } from './scenario.ts';
import type { Deed, Scenario } from './scenario.ts';

const COUNT = 500;
const SEED = 2026;

/** Bots with one tight limit often reach it by fills, after their orders were accepted. */
type Kind = 'any' | 'limited' | 'venue';

/** A call of the engine between two steps, by what supervises a run. */
export type Intervention =
  | { readonly call: 'setThresholds'; readonly thresholds: Thresholds }
  | { readonly call: 'grant'; readonly permit: Permit }
  | { readonly call: 'endPermit'; readonly id: string }
  | { readonly call: 'deny'; readonly reason: DenyReason | undefined }
  | { readonly call: 'revise'; readonly rules: VenueRules }
  | { readonly call: 'halt' | 'reEnable' };

export interface GeneratedBot extends Scenario {
  /** One list per step. */
  readonly between: readonly (readonly Intervention[])[];
  readonly opening: Opening | undefined;
  /** Answers of the venue, used in turn; undefined if fills are simulated. */
  readonly venue: { readonly rules: VenueRules; readonly replies: readonly Reply[] } | undefined;
  /** Bars are appended time by time. */
  readonly isLive: boolean;
}

/** Long enough for orders to end in every way. */
const length = { minLength: 6, maxLength: 24, size: 'max' } as const;

const SYMBOLS = ['M0', 'M1', 'M2'] as const;
const symbol = fc.constantFrom(...SYMBOLS);
const side = fc.constantFrom('buy' as const, 'sell' as const);
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });
const mostly = <T>(usual: T, ...others: T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  );

/** Plain orders are mostly those that a venue supports. */
function deedsOf(isPlain: boolean): fc.Arbitrary<Deed[]> {
  const exit = isPlain
    ? mostly<ExitPrice | undefined>(undefined, undefined, undefined, { percent: 0.02 })
    : fc.constantFrom<(ExitPrice | undefined)[]>(
        undefined,
        46,
        54,
        { percent: 0.01 },
        { percent: 0.03 },
      );
  const order = fc.record({
    kind: fc.constant('order' as const),
    market: fc.nat(2),
    side: isPlain ? fc.constantFrom('buy' as const, 'buy' as const, 'sell' as const) : side,
    type: isPlain
      ? fc.constantFrom('market', 'market', 'limit', 'limit', 'stop', ...ORDER_TYPES)
      : fc.constantFrom(...ORDER_TYPES),
    quantity: isPlain
      ? fc.constantFrom(1, 2, 4, 2.5, 0.3)
      : fc.constantFrom(1, 2, 3, 4, 6, 10, 40, 2.5, 0.3),
    limit: fc.integer({ min: -3, max: 3 }),
    stop: fc.integer({ min: -3, max: 3 }),
    trail: fc.constantFrom<ExitPrice[]>(1, 2, { percent: 0.03 }),
    timeInForce: isPlain
      ? mostly<TimeInForce>('gtc', ...TIMES_IN_FORCE)
      : fc.constantFrom('gtc', 'gtc', ...TIMES_IN_FORCE),
    postOnly: isPlain ? mostly(false, true) : fc.boolean(),
    reduceOnly: fc.constantFrom(false, false, true),
    takeProfit: exit,
    stopLoss: exit,
    ocoGroup: isPlain ? mostly(0, 0, 0, 1) : fc.constantFrom(0, 0, 0, 1, 2),
  } as const);
  const target = fc.record({
    kind: fc.constant('target' as const),
    market: fc.nat(2),
    weight: fc.constantFrom(
      ...(isPlain ? [0, 0.2, 0.5, 1] : [-4, -1, -0.4, 0, 0.25, 0.5, 1, 2, 6]),
    ),
  });
  const cancel = fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(3) });
  const deed = fc.oneof(
    { weight: 6, arbitrary: order },
    { weight: 2, arbitrary: target },
    { weight: 1, arbitrary: cancel },
  );
  return fc.array(deed, { maxLength: 3 });
}

/** A third of the bots have no limit, so that they trade much; the others have several. */
const limits: fc.Arbitrary<RiskLimits> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(NO_RISK_LIMITS) },
  {
    weight: 2,
    arbitrary: fc.record({
      max_order_value: mostly(Infinity, 400),
      max_order_qty: mostly(Infinity, 6),
      price_collar_bps: fc.constantFrom(Infinity, Infinity, 150, 400),
      max_messages_per_second: mostly(Infinity, 1, 2, 3),
      max_position_pct: fc.constantFrom(Infinity, 0.2, 0.5, 1),
      max_daily_loss_pct: mostly(Infinity, 0.01, 0.05),
      max_drawdown_pct: mostly(Infinity, 0.05, 0.2),
      max_instruments: mostly(Infinity, 1, 2),
    }),
  },
);

const optionalLimits: fc.Arbitrary<OptionalLimits | undefined> = fc.constantFrom(
  undefined,
  undefined,
  undefined,
  undefined,
  { price_collar_period: { seconds: 3 * 86_400, bps: 300 } },
  { messages_kept_for_cancels: 1 },
  { repeated_execution: { count: 3, seconds: 10 * 86_400 } },
  { permitted: ['M0', 'M2'] },
  {
    price_collar_period: { seconds: 86_400, bps: 500 },
    repeated_execution: { count: 6, seconds: 20 * 86_400 },
  },
);

const CASH = { model: 'cash' } as const;
const LEVERED = { model: 'margin', initial: 0.1, maintenance: 0.08 } as const;

function configOf(kind: Kind): fc.Arbitrary<EngineConfig> {
  return fc
    .record({
      cash: fc.constantFrom(300, 1000, 2000),
      fill: fc.constantFrom<EngineConfig['fill'][]>(
        { model: 'next_open' },
        { model: 'ohlc_path' },
        { model: 'volume_share', limit: 0.1 },
      ),
      units: fc.constantFrom('fractional' as const, 'whole' as const),
      fees: fc.constantFrom<EngineConfig['fees'][]>(
        { model: 'none' },
        { model: 'percent', rate: 0.001, min: 0 },
        { model: 'percent', rate: 0.001, min: 0.5 },
        { model: 'per_share', rate: 0.01, min: 0 },
        { model: 'per_share', rate: 0.01, min: 0.2 },
      ),
      slippage: fc.constantFrom<EngineConfig['slippage'][]>(
        { model: 'none' },
        { model: 'basis_points', bps: 20 },
        { model: 'volume_share', impact: 0.1 },
      ),
      account: {
        venue: fc.constant(CASH),
        limited: fc.constant(LEVERED),
        any: fc.constantFrom(CASH, { ...LEVERED, initial: 0.5, maintenance: 0.3 }, LEVERED),
      }[kind],
      risk:
        kind === 'limited' ? fc.constant({ ...NO_RISK_LIMITS, max_position_pct: 0.15 }) : limits,
      optionalLimits,
    })
    .map((chosen) => ({ ...ENGINE_DEFAULTS, ...chosen }));
}

const threshold = (...values: number[]): fc.Arbitrary<Threshold | undefined> =>
  optional(fc.constantFrom(...values).map((value) => ({ value })));

const thresholds: fc.Arbitrary<Thresholds> = fc.record({
  max_order_value: threshold(200, 500),
  max_gross_exposure: threshold(300, 800),
  max_daily_loss: threshold(5, 50),
  max_messages_per_second: threshold(1, 2),
  instruments: optional(
    fc.dictionary(
      symbol,
      fc.record({
        max_order_value: threshold(250),
        max_order_qty: threshold(4),
        max_gross_exposure: threshold(350),
      }),
    ),
  ),
});

const permit: fc.Arbitrary<Permit> = fc.record({
  override_id: fc.constantFrom('a', 'b', 'c', 'd'),
  symbol,
  side,
  max_quantity: fc.constantFrom(3, 8, 1000),
  worst_price: fc.constantFrom(null, null, 45, 50, 55),
  controls: fc.constantFrom(OVERRIDABLE_LIMITS, OVERRIDABLE_LIMITS, OVERRIDABLE_LIMITS.slice(0, 4)),
});

const venueRules: fc.Arbitrary<VenueRules> = fc.record({
  types: mostly<VenueRules['types']>(
    ORDER_TYPES.filter((type) => type !== 'trailing_stop'),
    ['market', 'limit'],
    ['limit'],
    ['market', 'stop'],
  ),
  instruments: fc
    .tuple(
      ...SYMBOLS.map((name) =>
        fc
          .record({
            step: fc.constantFrom(0, 0.1, 0.001),
            min_quantity: fc.constantFrom(0, 0.2, 1),
            min_value: fc.constantFrom(0, 0, 10, 60),
            tick: fc.constantFrom(0, 0.01, 0.5, 80),
            phase: mostly<MarketPhase>('open', 'open', 'auction', 'halted', 'closed'),
          })
          .map((rules) => [name, rules] as const),
      ),
    )
    .chain((rules) => mostly(rules, rules, rules.slice(0, 1)))
    .map((rules) => Object.fromEntries(rules)),
});

function interventionsOf(isAtVenue: boolean): fc.Arbitrary<GeneratedBot['between']> {
  const intervention = fc.oneof<fc.Arbitrary<Intervention>[]>(
    fc.record({ call: fc.constant('setThresholds' as const), thresholds }),
    ...[1, 2, 3].map(() => fc.record({ call: fc.constant('grant' as const), permit })),
    fc.record({ call: fc.constant('endPermit' as const), id: fc.constantFrom('a', 'b') }),
    fc.record({
      call: fc.constant('deny' as const),
      reason: fc.constantFrom<(DenyReason | undefined)[]>(
        ...Array<undefined>(8).fill(undefined),
        'license_invalid',
        'control_unreachable',
        'reconcile_mismatch',
        'stale_data',
        'superseded',
        'stopping',
      ),
    }),
    fc.record({ call: fc.constantFrom('halt' as const, 'reEnable' as const) }),
    ...(isAtVenue ? [1, 2, 3, 4] : []).map(() =>
      fc.record({ call: fc.constant('revise' as const), rules: venueRules }),
    ),
  );
  const lists = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(intervention, { minLength: 1, maxLength: 3 }) },
    ),
    length,
  );
  return fc.oneof(fc.constant([]), lists);
}

function openingOf(isLongOnly: boolean): fc.Arbitrary<Opening> {
  const held = fc.record({
    quantity: fc.constantFrom(...(isLongOnly ? [0, 2, 6.5] : [0, 3, -2, -8])),
    price: fc.constantFrom(45, 50, 52),
  });
  const executions = fc.array(
    fc.record({ symbol, side, times: fc.constant([START - 86_400_000, START - 1000]) }),
    { maxLength: 2 },
  );
  const risk = fc.record({
    peak_equity: fc.constantFrom(600, 2500),
    day_start_equity: fc.constantFrom(600, 1500),
    day: fc.constantFrom(null, '2023-12-31', '2024-01-01'),
    executions,
  });
  // Every bot has this market.
  const positions = held.map((position) => ({ M0: position }));
  return fc.record({ cash: fc.constantFrom(0, 500, 2000), positions, risk: optional(risk) });
}

const bot: fc.Arbitrary<GeneratedBot> = fc
  .constantFrom<Kind[]>('any', 'any', 'any', 'limited', 'venue', 'venue')
  .chain((kind) => fc.tuple(fc.constant(kind), configOf(kind)))
  .chain(([kind, config]) => {
    const isAtVenue = kind === 'venue';
    const deeds = deedsOf(kind !== 'any');
    return fc.record({
      markets: fc.array(fc.array(move, length), { minLength: 1, maxLength: 3 }),
      onBar: fc.array(deeds, length),
      onFill: fc.oneof(fc.constant([[]]), fc.array(deeds, { minLength: 1, maxLength: 6 })),
      config: fc.constant(config),
      base: fc.constant(50),
      between: interventionsOf(isAtVenue),
      opening: optional(openingOf(config.account.model === 'cash')),
      venue: isAtVenue ? fc.record({ rules: venueRules, replies }) : fc.constant(undefined),
      isLive: isAtVenue ? fc.constant(true) : fc.boolean(),
    });
  });

/** The same bots in every process. */
export function generatedBots(): GeneratedBot[] {
  return fc.sample(bot, { seed: SEED, numRuns: COUNT });
}
