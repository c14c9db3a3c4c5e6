import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { NO_RISK_LIMITS, type EngineConfig } from '../../src/engine/config.ts';
import type { OrderEvent } from '../../src/engine/journal.ts';
import type { Order, OrderRequest } from '../../src/engine/orders/order.ts';
import type { Step } from '../../src/engine/steps.ts';
import { defineStrategy, type Fill, type StrategyContext } from '../../src/engine/strategy.ts';
import type { SessionInput } from '../../src/trading/session-events.ts';
import { stateHash, type SessionState } from '../../src/events/session-state.ts';
import type { DenyReason } from '../../src/engine/orders/order.ts';
import { openingFrom } from '../../src/trading/opening.ts';
import { TradingSession, type SessionSetup } from '../../src/trading/trading-session.ts';
import {
  clientOrderId,
  type VenueOrder,
  type VenueReport,
  type VenueRules,
} from '../../src/trading/venue.ts';
import { DAY, ENGINE_DEFAULTS, MARGIN, START } from '../engine/market.ts';
import { runs } from '../length.ts';

const DEPLOYMENT = '01980000-0000-7000-8000-000000000001';
const RULES: VenueRules = {
  types: ['market', 'limit', 'stop', 'stop_limit'],
  instruments: {
    X: { step: 0.1, min_quantity: 0.2, min_value: 10, tick: 0.5 },
    Y: { step: 0.001, min_quantity: 0.001, min_value: 0, tick: 0 },
  },
};

const NOT_TAKEN = 'not_taken_in_auction';

type Request = Omit<OrderRequest, 'instrument'> & { readonly symbol?: 'X' | 'Y' };

interface Scene extends StrategyContext {
  readonly order: (request: Request) => Readonly<Order>;
  readonly target: (symbol: 'X' | 'Y', weight: number) => Readonly<Order>;
}

interface Options {
  readonly onStep: (step: number, scene: Scene) => void;
  readonly onFill?: (fill: Fill) => void;
  readonly config?: Partial<EngineConfig>;
  readonly rules?: VenueRules;
  readonly opening?: SessionSetup['opening'];
}

/** A strategy on X and Y that does this at each step, counted from 0. */
function setupOf({ onStep, onFill, config, rules, opening }: Options): SessionSetup {
  const strategy = defineStrategy({
    name: 'scripted',
    description: 'Does what a test tells it to.',
    params: {},
    create(context) {
      const { broker, instruments } = context;
      const [x, y] = instruments;
      const of = (symbol: 'X' | 'Y') => (symbol === 'X' ? x : y!);
      let at = 0;
      const scene: Scene = {
        ...context,
        order: ({ symbol = 'X', ...request }) =>
          broker.order({ ...request, instrument: of(symbol) }),
        target: (symbol, weight) => broker.target(of(symbol), weight),
      };
      return { onBar: () => onStep(at++, scene), ...(onFill !== undefined && { onFill }) };
    },
  });
  return {
    venue: { deployment_id: DEPLOYMENT, rules: rules ?? RULES },
    symbols: ['X', 'Y'],
    strategy,
    params: {},
    config: { ...ENGINE_DEFAULTS, cash: 1000, ...config },
    timeoutMs: Infinity,
    opening,
  };
}

/** Setup of a session that fills its orders from the bars. */
function paperSetup(options: Options): SessionSetup {
  return { ...setupOf(options), venue: undefined };
}

function scripted(options: Options): TradingSession {
  return new TradingSession(setupOf(options));
}

/** A step with a bar of each instrument that has a price. */
function step(day: number, x: number | undefined, y?: number): Step {
  const bar = (price: number) => ({
    open: price,
    high: price,
    low: price,
    close: price,
    volume: 5,
  });
  const bars = { ...(x !== undefined && { X: bar(x) }), ...(y !== undefined && { Y: bar(y) }) };
  return { time: START + day * DAY, bars };
}

const NOON = START + DAY / 2;

function report(order: number, more: Partial<VenueReport>): VenueReport {
  return {
    order,
    client_order_id: clientOrderId(DEPLOYMENT, order),
    status: 'open',
    filled: 0,
    cost: 0,
    fee: 0,
    fee_units: 0,
    time: NOON,
    ...more,
  };
}

const kinds = (events: readonly OrderEvent[]): unknown[] =>
  events.map((event) => ['reason' in event ? event.reason : event.kind.slice(6), event.order]);
const placed = (session: TradingSession): unknown[] =>
  session.outbox().map((request) => ('place' in request ? request.place.order : 'cancel'));

describe('changed rules of the venue', () => {
  const limit: Request = { side: 'buy', quantity: 1, type: 'limit', limit: 99.7 };
  const withX = (x: Partial<VenueRules['instruments'][string]>): VenueRules => ({
    ...RULES,
    instruments: { ...RULES.instruments, X: { ...RULES.instruments['X']!, ...x } },
  });

  it.each<[string, VenueRules, Request, string]>([
    ['halted', withX({ phase: 'halted' }), limit, 'market_halted'],
    ['closed', withX({ phase: 'closed' }), limit, 'market_closed'],
    ['in an auction', withX({ phase: 'auction' }), limit, 'submitted'],
    ['in an auction', withX({ phase: 'auction' }), { ...limit, timeInForce: 'ioc' }, NOT_TAKEN],
    ['in an auction', withX({ phase: 'auction' }), { ...limit, postOnly: true }, NOT_TAKEN],
    ['in an auction', withX({ phase: 'auction' }), { side: 'buy', quantity: 1 }, NOT_TAKEN],
    ['gone', { ...RULES, instruments: {} }, limit, 'unknown_symbol'],
    ['of another tick', withX({ tick: 1000 }), limit, 'invalid_order'],
    ['of another lot', withX({ step: 10 }), limit, 'below_minimum'],
  ])('while X is %s, apply to %o', (_what, rules, request, expected) => {
    const session = scripted({ onStep: (_, { order }) => order(request) });
    expect(session.revise(rules).events).toEqual([]);
    expect(kinds(session.push(step(0, 100)).events)).toEqual([[expected, 1]]);
  });

  it('after a halt, orders wait for a price, and orders outside the collar are canceled', () => {
    const config = { risk: { ...NO_RISK_LIMITS, price_collar_bps: 500 } };
    const session = scripted({
      onStep: (at, { order }) => {
        if (at !== 1)
          order({ side: 'buy', quantity: 1, type: 'limit', limit: at === 0 ? 97 : 109 });
      },
      config,
    });
    session.push(step(0, 100));
    session.report(report(1, {}));
    session.revise(withX({ phase: 'halted' }));
    expect(session.isShut({ order: 1, client_order_id: '', symbol: 'X' })).toBe(true);
    session.revise(RULES);
    const events = [1, 2, 3].flatMap((day) => session.push(step(day, 110)).events);
    expect(kinds(events)).toEqual([
      ['price_collar_bps', 1],
      ['submitted', 2],
      ['submitted', 3],
    ]);
    expect(session.isShut({ order: 1, client_order_id: '', symbol: 'X' })).toBe(false);
  });

  it('an order not sent before a halt is not sent afterwards at an outdated price', () => {
    const config = { risk: { ...NO_RISK_LIMITS, price_collar_bps: 500 } };
    const session = scripted({
      onStep: (at, { order }) => {
        if (at === 0) order({ side: 'buy', quantity: 1 });
      },
      config,
    });
    session.push(step(0, 100));
    session.revise(withX({ phase: 'halted' }));
    session.revise(RULES);
    const events = [90, 90].flatMap((price, at) => session.push(step(at + 1, price)).events);
    expect(events).toMatchObject([{ kind: 'order.pending_cancel', reason: 'price_collar_bps' }]);
  });

  it('holdings of a delisted instrument count, and other instruments trade on', () => {
    const session = scripted({
      onStep: (_, { order }) => order({ side: 'buy', quantity: 1, symbol: 'Y' }),
      config: { risk: { ...NO_RISK_LIMITS, max_instruments: 1 } },
      opening: { cash: 1000, positions: { X: { quantity: 2, price: 100 } } },
    });
    session.revise({ ...RULES, instruments: { Y: RULES.instruments['Y']! } });
    expect(kinds(session.push(step(0, 100, 100)).events)).toEqual([['max_instruments', 1]]);
    expect(session.failure).toBeUndefined();
  });

  it('all units are sold although their sum has a rounding error', () => {
    const quantity = 0.7 + 0.1;
    expect(quantity).toBeLessThan(0.8);
    const session = scripted({
      onStep: (_, { order }) => order({ side: 'sell', quantity: 0.8 }),
      opening: { cash: 1000, positions: { X: { quantity, price: 100 } } },
    });
    expect(kinds(session.push(step(0, 100)).events)).toEqual([['submitted', 1]]);
  });

  it('a relisted instrument does not trade before it has a price', () => {
    const session = scripted({ onStep: (_, { order }) => order(limit) });
    session.push(step(0, 100, 100));
    session.revise({ ...RULES, instruments: { Y: RULES.instruments['Y']! } });
    session.revise(RULES);
    const events = [undefined, 100].flatMap((x, at) => session.push(step(at + 1, x, 100)).events);
    expect(kinds(events)).toEqual([
      ['market_halted', 2],
      ['submitted', 3],
    ]);
  });

  it('a session resumed from the recorded rules is the same', async () => {
    const setup = setupOf({ onStep: (_, { order }) => order(limit) });
    const inputs: SessionInput[] = [
      { kind: 'data.bars', step: step(0, 100) },
      { kind: 'venue.terms', rules: withX({ tick: 7, phase: 'auction' }) },
      { kind: 'data.bars', step: step(1, 100) },
      { kind: 'venue.terms', rules: withX({ phase: 'halted' }) },
      { kind: 'data.bars', step: step(2, 100) },
    ];
    const one = await TradingSession.resume(setup, inputs);
    const other = new TradingSession(setup);
    other.push(step(0, 100));
    other.revise(withX({ tick: 7, phase: 'auction' }));
    other.push(step(1, 100));
    other.revise(withX({ phase: 'halted' }));
    other.push(step(2, 100));
    expect(stateHash(one.state())).toBe(stateHash(other.state()));
    expect(one.state().working.map((order) => order.limit)).toEqual([99.5, 98]);
    expect(one.rules).toEqual(other.rules);
  });
});

describe('supervision at a venue', () => {
  it('cancels no more working orders than needed while cancels are unconfirmed', () => {
    const session = scripted({
      onStep: (at, { order }) => {
        if (at > 0) return;
        for (const quantity of [1, 2, 3])
          order({ side: 'buy', quantity, type: 'limit', limit: 90 });
      },
    });
    session.push(step(0, 100));
    const thresholds = { max_gross_exposure: { value: 400 } };
    const { events } = session.supervise({ kind: 'risk.thresholds_set', thresholds });
    expect(kinds(events)).toEqual([['threshold_gross_exposure', 3]]);
  });

  it('an order under a permit is filled at no worse price than the permit allows', () => {
    const collar = { price_collar_period: { bps: 100, seconds: 10 * (DAY / 1000) } };
    const session = scripted({
      onStep: (at, { order }) => {
        if (at > 0) order({ side: 'buy', quantity: 1 });
        else order({ side: 'buy', quantity: 1, type: 'limit', limit: 90 });
      },
      config: { optionalLimits: collar },
    });
    session.push(step(0, 90));
    const permit = {
      override_id: 'o',
      symbol: 'X',
      side: 'buy',
      max_quantity: 1,
      worst_price: 101.2,
      controls: ['price_collar_period'],
      expires_at: START + 100 * DAY,
    } as const;
    session.supervise({ kind: 'risk.override_granted', permit });
    const { used } = session.push(step(1, 100));
    expect(used).toHaveLength(1);
    expect(session.outbox().at(-1)).toMatchObject({ place: { order: 2, limit: 101 } });
  });
});

describe('a busted or corrected trade', () => {
  const bought = () => {
    const session = scripted({
      onStep: (at, { order }) => {
        if (at === 0) order({ side: 'buy', quantity: 4, type: 'limit', limit: 100 });
        if (at === 1) order({ side: 'sell', quantity: 4, type: 'limit', limit: 110 });
      },
    });
    session.push(step(0, 100));
    session.report(report(1, { status: 'filled', filled: 4, cost: 400, fee: 4 }));
    return session;
  };

  it('leaves the state as if the busted trade had not happened', () => {
    const session = bought();
    const half = session.report(
      report(1, { status: 'canceled', filled: 2, cost: 200, fee: 2, corrections: 1 }),
    );
    expect(half.events).toMatchObject([
      { kind: 'order.corrected', quantity: -2, price: 100, fee: -2, position: 2, cash: 798 },
    ]);
    // A repeated correction counts once.
    for (const late of [
      report(1, { status: 'filled', filled: 4, cost: 400, fee: 4 }),
      report(1, { status: 'canceled', filled: 2, cost: 200, fee: 2, corrections: 1 }),
    ]) {
      expect(session.report(late).events).toEqual([]);
    }
    const dearer = session.report(
      report(1, { status: 'canceled', filled: 2, cost: 220, fee: 2, corrections: 2 }),
    );
    expect(dearer.events).toMatchObject([
      { kind: 'order.corrected', quantity: 0, position: 2, cash: 778 },
    ]);
    expect(session.result().result.openTrades).toMatchObject([{ quantity: 2, entry_price: 110 }]);
    const none = session.report(report(1, { status: 'canceled', corrections: 3 }));
    expect(none.state).toMatchObject({ cash: 1000, positions: {}, equity: 1000 });
    expect(session.result().result).toMatchObject({ fees: 0, trades: [], openTrades: [] });
  });

  it('counts as the next correction if the venue only marks it, and outdates earlier reports', () => {
    const session = bought();
    const time = 7_200_000;
    const { events } = session.report(
      report(1, { status: 'canceled', filled: 2, cost: 200, fee: 2, time, is_correction: true }),
    );
    expect(events).toMatchObject([{ kind: 'order.corrected', quantity: -2, position: 2 }]);
    const late = report(1, { status: 'filled', filled: 4, cost: 400, fee: 4, time: time - 1 });
    expect(session.report(late).events).toEqual([]);
    const repeated = report(1, { status: 'canceled', filled: 2, cost: 200, fee: 2, time });
    expect(session.report(repeated).events).toEqual([]);
    const more = report(1, { status: 'canceled', filled: 3, cost: 300, fee: 3, time: time + 1 });
    expect(session.report(more).state).toMatchObject({ positions: { X: 3 }, cash: 697 });
  });

  it('is not assumed from lower sums alone', () => {
    const session = bought();
    const stale = report(1, { filled: 1, cost: 100, fee: 1, time: 7_200_000 });
    expect(session.report(stale).events).toEqual([]);
    expect(session.state()).toMatchObject({ positions: { X: 4 } });
  });

  it('restores the position when an exit is busted', () => {
    const session = bought();
    session.push(step(1, 100));
    session.report(report(2, { status: 'filled', filled: 4, cost: 440 }));
    expect(session.state()).toMatchObject({ cash: 1036, positions: {} });
    const { state } = session.report(report(2, { status: 'canceled', corrections: 1 }));
    expect(state).toMatchObject({ cash: 596, positions: { X: 4 } });
  });

  it('keeps the entry price when a partial exit is corrected or busted', () => {
    const session = bought();
    session.push(step(1, 100));
    session.report(report(2, { filled: 2, cost: 220 }));
    session.report(report(2, { filled: 1, cost: 110, corrections: 1 }));
    session.report(report(2, { filled: 1, cost: 111, corrections: 2 }));
    expect(session.state()).toMatchObject({ cash: 707, positions: { X: 3 } });
    session.report(report(2, { filled: 0, corrections: 3 }));
    expect(session.result().result.openTrades).toMatchObject([
      { quantity: 4, entry_price: 100, pnl: -4 },
    ]);
  });

  it('does not change the next trade when a part of a closed trade is busted', () => {
    const session = scripted({
      onStep: (at, { order }) => {
        const [side, quantity] = [
          at === 1 ? ('sell' as const) : ('buy' as const),
          at === 2 ? 4 : 2,
        ];
        order({ side, quantity, type: 'limit', limit: 100 });
      },
    });
    session.push(step(0, 100));
    session.report(report(1, { status: 'filled', filled: 2, cost: 180 }));
    session.push(step(1, 100));
    session.report(report(2, { status: 'filled', filled: 2, cost: 200 }));
    session.push(step(2, 100));
    session.report(report(3, { status: 'filled', filled: 4, cost: 400 }));
    session.report(report(1, { status: 'canceled', corrections: 1 }));
    expect(session.state()).toMatchObject({ cash: 800, positions: { X: 2 } });
    const { trades, openTrades } = session.result().result;
    expect(openTrades).toMatchObject([{ entry_price: 100 }]);
    const pnl = [...trades, ...openTrades].reduce((sum, trade) => sum + trade.pnl, 0);
    expect(pnl).toBeCloseTo(session.state().equity - 1000);
  });

  it('closes a partly sold trade when a bust leaves it no units', () => {
    const session = scripted({
      onStep: (at, { order }) => {
        order({ side: at < 2 ? 'buy' : 'sell', quantity: 2, type: 'limit', limit: 100 });
      },
    });
    for (const [at, cost] of [200, 200, 220].entries()) {
      session.push(step(at, 100));
      session.report(report(at + 1, { status: 'filled', filled: 2, cost }));
    }
    session.report(report(2, { status: 'canceled', corrections: 1 }));
    expect(session.state()).toMatchObject({ cash: 1020, positions: {} });
    expect(session.result().result.trades).toMatchObject([{ quantity: 2, pnl: 20 }]);
  });

  it('keeps an order working when its partial fill is busted', () => {
    const session = scripted({
      onStep: (_, { order }) => order({ side: 'buy', quantity: 4, type: 'limit', limit: 100 }),
    });
    session.push(step(0, 100));
    session.report(report(1, { filled: 1, cost: 100 }));
    const { state } = session.report(report(1, { corrections: 1 }));
    expect(state.working).toMatchObject([{ order: 1, filled: 0 }]);
    session.report(report(1, { status: 'filled', filled: 4, cost: 400, corrections: 1 }));
    expect(session.state()).toMatchObject({ cash: 600, positions: { X: 4 }, working: [] });
  });
});

test('a correction whose fees in units offset its fills changes the order without an event', () => {
  const session = scripted({
    onStep: (_, { order }) => order({ side: 'buy', quantity: 4, type: 'limit', limit: 100 }),
  });
  session.push(step(0, 100));
  session.report(report(1, { filled: 1, cost: 100 }));
  const corrected = session.report(
    report(1, { filled: 2, cost: 100, fee_units: 1, corrections: 1 }),
  );
  expect(corrected.events).toEqual([]);
  expect(corrected.state).toMatchObject({
    cash: 900,
    positions: { X: 1 },
    working: [{ filled: 2 }],
  });
});

test('an instrument without new bars does not trade while others do', () => {
  const session = scripted({
    onStep: (_, { order }) => order({ side: 'buy', quantity: 1, type: 'limit', limit: 90 }),
  });
  session.push(step(0, 100, 100));
  const events = [1, 2, 3].flatMap((day) => session.push(step(day, undefined, 100)).events);
  expect(kinds(events)).toEqual([
    ['submitted', 2],
    ['submitted', 3],
    ['stale_data', 4],
  ]);
});

test('an order that waited too long is not sent at stale prices', () => {
  const session = scripted({
    onStep: (at, { target }) => {
      if (at < 2) target('X', at === 0 ? 0.5 : 0.4);
    },
  });
  session.push(step(0, 100, 100));
  session.report(report(1, {}));
  session.push(step(1, 100, 100));
  const events = [2, 3, 4].flatMap((day) => session.push(step(day, undefined, 100)).events);
  expect(kinds(events)).toEqual([['stale_data', 2]]);
  session.report(report(1, { status: 'canceled' }));
  expect(session.outbox()).toEqual([]);
});

test('an order keeps its client order id when the epoch rises, and later orders have the new epoch', async () => {
  const options: Options = {
    onStep: (_, { order }) => order({ side: 'buy', quantity: 1, type: 'limit', limit: 50 }),
  };
  const session = scripted(options);
  session.push(step(0, 100));
  session.report(report(1, {}));
  session.supervise({ kind: 'control.epoch_set', epoch: 2 });
  const { state } = session.push(step(1, 100));
  const names = [clientOrderId(DEPLOYMENT, 1), clientOrderId(DEPLOYMENT, 2, 2)];
  expect(state.working.map(({ client_order_id }) => client_order_id)).toEqual(names);
  expect(session.supervised.epoch).toBe(2);
  expect(() => session.report(report(2, {}))).toThrow(RangeError);
  session.report(report(2, { client_order_id: names[1]! }));

  const again = await TradingSession.resume(setupOf(options), [
    { kind: 'data.bars', step: step(0, 100) },
    { kind: 'venue.report', report: report(1, {}) },
    { kind: 'control.epoch_set', epoch: 2 },
    { kind: 'data.bars', step: step(1, 100) },
    { kind: 'venue.report', report: report(2, { client_order_id: names[1]! }) },
  ]);
  expect(again.state()).toEqual(session.state());
});

test('only reports of the venue fill an order, and the strategy is notified with the next bars', () => {
  const heard: unknown[] = [];
  const session = scripted({
    onStep: (at, { order, broker, instruments }) => {
      if (at === 0) order({ side: 'buy', quantity: 2.57, type: 'limit', limit: 99.9 });
      heard.push(broker.position(instruments[0]));
    },
    onFill: ({ quantity, price, fee, order }) => heard.push([order.id, quantity, price, fee]),
  });
  const first = session.push(step(0, 100));
  expect(kinds(first.events)).toEqual([['submitted', 1]]);
  const place: VenueOrder = {
    order: 1,
    client_order_id: clientOrderId(DEPLOYMENT, 1),
    symbol: 'X',
    side: 'buy',
    type: 'limit',
    time_in_force: 'gtc',
    quantity: 2.5,
    limit: 99.5,
  };
  expect(session.outbox()).toEqual([{ place }]);
  expect(first.state.working).toEqual([{ ...place, filled: 0, triggered: false }]);
  // Far below the limit, where a backtest would fill it.
  expect(session.push(step(1, 50)).events).toEqual([]);
  const known = session.report(report(1, {}));
  expect(known).toEqual({ events: [], state: session.state() });
  expect(session.outbox()).toEqual([]);
  const part = session.report(report(1, { filled: 1, cost: 98, fee: 0.5 }));
  expect(part.events).toEqual([
    {
      seq: 2,
      time: new Date(NOON).toISOString(),
      kind: 'order.filled',
      order: 1,
      symbol: 'X',
      side: 'buy',
      quantity: 1,
      price: 98,
      reference: 98,
      fee: 0.5,
      slippage: 0,
      position: 1,
      cash: 901.5,
    },
  ]);
  expect(part.state).toMatchObject({ cash: 901.5, equity: 951.5, working: [{ filled: 1 }] });
  const whole = session.report(report(1, { status: 'filled', filled: 2.5, cost: 248, fee: 1 }));
  expect(whole.state).toMatchObject({ cash: 751, positions: { X: 2.5 }, working: [] });
  expect(heard).toEqual([0, 0]);
  session.push(step(2, 50));
  expect(heard).toEqual([0, 0, [1, 1, 98, 0.5], [1, 1.5, 100, 0.5], 2.5]);
  expect(session.result().result).toMatchObject({ fees: 1, orders: { filled: 1, fills: 2 } });
});

describe('cancel of an order', () => {
  const canceling = (): TradingSession =>
    scripted({
      onStep: (at, { order, broker }) => {
        if (at === 0) order({ side: 'buy', quantity: 2, type: 'limit', limit: 90 });
        else for (const one of broker.working()) broker.cancel(one);
      },
    });

  it('is requested once, and ends the order when the venue confirms it', () => {
    const session = canceling();
    session.push(step(0, 100));
    session.report(report(1, {}));
    const { events, state } = session.push(step(1, 100));
    expect(events).toMatchObject([
      { kind: 'order.pending_cancel', reason: 'canceled_by_strategy' },
    ]);
    expect(state.working).toMatchObject([{ order: 1, pending_cancel: true }]);
    expect(session.push(step(2, 100)).events).toEqual([]);
    const client_order_id = clientOrderId(DEPLOYMENT, 1);
    expect(session.outbox()).toEqual([{ cancel: { order: 1, client_order_id, symbol: 'X' } }]);
    const ended = session.report(report(1, { status: 'canceled' }));
    expect(kinds(ended.events)).toEqual([['canceled_by_strategy', 1]]);
    expect(ended.state.working).toEqual([]);
    expect(session.outbox()).toEqual([]);
  });

  it('can be too late for a filled order, and a fill reported afterwards counts', () => {
    const raced = canceling();
    raced.push(step(0, 100));
    raced.push(step(1, 100));
    const { events, state } = raced.report(report(1, { status: 'canceled', filled: 2, cost: 180 }));
    expect(kinds(events)).toEqual([['filled', 1]]);
    expect(state).toMatchObject({ positions: { X: 2 }, working: [] });

    const late = canceling();
    late.push(step(0, 100));
    late.push(step(1, 100));
    late.report(report(1, { status: 'canceled' }));
    const after = late.report(report(1, { status: 'filled', filled: 2, cost: 180 }));
    expect(kinds(after.events)).toEqual([['filled', 1]]);
    expect(after.state).toMatchObject({ cash: 820, positions: { X: 2 }, working: [] });
    expect(late.result().result.orders).toMatchObject({ canceled: 1, filled: 0, fills: 1 });
  });

  it('releases reserved cash only when the cancel is confirmed', () => {
    const moved = (): TradingSession => {
      const session = scripted({
        onStep: (at, { order, broker }) => {
          for (const one of broker.working()) broker.cancel(one);
          order({ side: 'sell', quantity: 1, type: 'stop', stop: 80 + at });
        },
        opening: { cash: 0, positions: { X: { quantity: 1, price: 100 } } },
      });
      session.push(step(0, 100));
      expect(kinds(session.push(step(1, 100)).events)).toEqual([
        ['canceled_by_strategy', 1],
        ['submitted', 2],
      ]);
      expect(placed(session)).toEqual(['cancel']);
      return session;
    };
    const canceled = moved();
    canceled.report(report(1, { status: 'canceled' }));
    expect(canceled.outbox()).toMatchObject([{ place: { order: 2, stop: 81 } }]);
    const filled = moved();
    const { events } = filled.report(report(1, { status: 'filled', filled: 1, cost: 80 }));
    expect(kinds(events)).toEqual([
      ['filled', 1],
      ['short_not_allowed', 2],
    ]);
  });

  it('needs no venue before the order was sent', () => {
    const session = scripted({
      onStep: (_, { order, broker }) =>
        broker.cancel(order({ side: 'buy', quantity: 2, type: 'limit', limit: 90 })),
    });
    expect(kinds(session.push(step(0, 100)).events)).toEqual([
      ['submitted', 1],
      ['canceled_by_strategy', 1],
    ]);
    expect(session.outbox()).toEqual([]);
    expect(() => session.report(report(1, {}))).toThrow(RangeError);
  });
});

test('an immediate stop is denied, and an expired immediate limit ends as in a backtest', () => {
  const session = scripted({
    onStep: (_, { order }) => {
      order({ side: 'buy', quantity: 1, type: 'stop', stop: 110, timeInForce: 'ioc' });
      order({ side: 'buy', quantity: 1, type: 'limit', limit: 90, timeInForce: 'ioc' });
    },
  });
  const { events } = session.push(step(0, 100));
  expect(kinds(events)).toEqual([
    ['not_supported_by_venue', 1],
    ['submitted', 2],
  ]);
  const ended = session.report(report(2, { status: 'expired' }));
  expect(kinds(ended.events)).toEqual([['not_filled_at_once', 2]]);
});

test.each([
  ['rejected', undefined, 'refused_by_venue'],
  ['rejected', 'post_only_would_cross', 'post_only_would_cross'],
  ['rejected', 'EOrder:Something', 'refused_by_venue'],
  ['canceled', undefined, 'canceled_by_venue'],
  ['canceled', 'not_at_venue', 'not_at_venue'],
  ['canceled', 'stopping', 'stopping'],
  ['expired', undefined, 'expired_at_venue'],
] as const)('an order reported %s with the reason %s ends with %s', (status, reason, expected) => {
  const session = scripted({
    onStep: (_, { order }) => order({ side: 'buy', quantity: 2 }),
  });
  session.push(step(0, 100));
  const more = reason === undefined ? { status } : { status, reason };
  const { events } = session.report(report(1, more));
  expect(events).toMatchObject([{ kind: `order.${status}`, reason: expected }]);
});

describe('orders that the venue would reject', () => {
  const cases: readonly (readonly [reason: string, request: Request])[] = [
    ['not_supported_by_venue', { side: 'buy', quantity: 1, type: 'trailing_stop', trail: 2 }],
    ['not_supported_by_venue', { side: 'buy', quantity: 1, takeProfit: 110 }],
    ['not_supported_by_venue', { side: 'buy', quantity: 1, stopLoss: 90 }],
    ['not_supported_by_venue', { side: 'buy', quantity: 1, ocoGroup: 1 }],
    ['not_supported_by_venue', { side: 'buy', quantity: 1, timeInForce: 'day' }],
    ['not_supported_by_venue', { side: 'buy', quantity: 1, timeInForce: 'fok' }],
    [
      'not_supported_by_venue',
      { side: 'buy', quantity: 1, type: 'limit', limit: 90, postOnly: true, timeInForce: 'ioc' },
    ],
    ['not_supported_by_venue', { side: 'buy', quantity: 1, type: 'stop', stop: 110 }],
    ['below_minimum', { side: 'buy', quantity: 0.19 }],
    ['below_minimum', { side: 'buy', quantity: 0.2, type: 'limit', limit: 49 }],
    ['insufficient_funds', { side: 'buy', quantity: 10.1 }],
    ['short_not_allowed', { side: 'sell', quantity: 1.1 }],
    ['nothing_to_reduce', { side: 'buy', quantity: 1, reduceOnly: true }],
    ['max_order_qty', { side: 'buy', quantity: 9 }],
    ['price_collar_bps', { side: 'buy', quantity: 1, type: 'limit', limit: 20 }],
  ];

  it.each(cases)('are denied with %s: %o', (reason, request) => {
    const session = scripted({
      onStep: (_, { order }) => order(request),
      config: {
        risk: {
          ...NO_RISK_LIMITS,
          price_collar_bps: 6000,
          max_order_qty: reason === 'max_order_qty' ? 8 : 1e9,
        },
      },
      rules: { ...RULES, types: ['market', 'limit'] },
      opening: { cash: 1000, positions: { X: { quantity: 1, price: 100 } } },
    });
    const { events } = session.push(step(0, 100));
    expect(events).toMatchObject([{ kind: 'order.denied', reason }]);
    expect(session.outbox()).toEqual([]);
    expect(() => session.report(report(1, {}))).toThrow(RangeError);
  });

  it('with a collar, every order has a limit that the account can pay', () => {
    const session = scripted({
      onStep: (at, { order }) => {
        if (at > 0) return;
        order({ side: 'buy', quantity: 2 });
        order({ side: 'sell', quantity: 1 });
        order({ side: 'buy', quantity: 7.5 });
        order({ side: 'sell', quantity: 1, type: 'stop', stop: 97 });
      },
      config: { risk: { ...NO_RISK_LIMITS, price_collar_bps: 500 } },
      opening: { cash: 1000, positions: { X: { quantity: 2, price: 100 } } },
    });
    session.push(step(0, 100));
    const sent = session.outbox().flatMap((request) => ('place' in request ? [request.place] : []));
    expect(sent).toMatchObject([
      { type: 'limit', time_in_force: 'ioc', limit: 105 },
      { type: 'limit', time_in_force: 'ioc', limit: 95 },
      // 900 remain after the reservations and proceeds of the other orders.
      { type: 'limit', time_in_force: 'ioc', limit: 105 },
      { type: 'stop_limit', time_in_force: 'gtc', stop: 97, limit: 92.5 },
    ]);
    const { events } = session.report(report(1, { status: 'canceled', filled: 1, cost: 101 }));
    expect(events.at(-1)).toMatchObject({ kind: 'order.canceled', reason: 'price_collar_bps' });
    const all = scripted({
      onStep: (_, { target }) => target('X', 1),
      config: { risk: { ...NO_RISK_LIMITS, price_collar_bps: 500 } },
    });
    all.push(step(0, 100));
    expect(all.outbox()).toMatchObject([{ place: { quantity: 10, limit: 100 } }]);
  });

  it('the collar of a delayed order uses the price at which it is sent', () => {
    const session = scripted({
      onStep: (at, { target }) => {
        if (at < 2) target('X', at === 0 ? 0.5 : 0.4);
      },
      config: { risk: { ...NO_RISK_LIMITS, price_collar_bps: 500 } },
    });
    session.push(step(0, 100));
    session.report(report(1, {}));
    for (const [at, price] of [100, 96, 92].entries()) session.push(step(at + 1, price));
    session.report(report(1, { status: 'canceled' }));
    expect(session.outbox()).toMatchObject([{ place: { order: 2, limit: 96.5 } }]);
  });

  it('the collar of a sale does not push its value below the minimum of the venue', () => {
    const session = scripted({
      onStep: (_, { order }) => order({ side: 'sell', quantity: 0.2 }),
      config: { risk: { ...NO_RISK_LIMITS, price_collar_bps: 5000 } },
      opening: { cash: 1000, positions: { X: { quantity: 2, price: 60 } } },
    });
    session.push(step(0, 60));
    expect(session.outbox()).toMatchObject([{ place: { limit: 50 } }]);
  });

  it('the limit of a collar leaves enough cash for the fee', () => {
    const session = scripted({
      onStep: (_, { order }) => order({ side: 'buy', quantity: 5 }),
      config: {
        cash: 520,
        fees: { model: 'percent', rate: 0.01, min: 0 },
        risk: { ...NO_RISK_LIMITS, price_collar_bps: 1000 },
      },
    });
    session.push(step(0, 100));
    // At 103 it would cost 515 plus a fee of 5.15.
    expect(session.outbox()).toMatchObject([{ place: { limit: 102.5 } }]);
  });

  it('a pending target counts beside an order', () => {
    const session = scripted({
      onStep: (at, { target, order }) => {
        if (at === 0) target('X', 0.5);
        else order({ side: 'buy', quantity: 2, type: 'limit', limit: 100 });
      },
      config: { risk: { ...NO_RISK_LIMITS, max_position_pct: 0.6 } },
    });
    session.push(step(0, 100));
    expect(kinds(session.push(step(1, 100)).events)).toEqual([['max_position_pct', 2]]);
  });

  it('cash and positions reserved by working orders cannot be used twice', () => {
    const session = scripted({
      onStep: (_, { order }) => {
        order({ side: 'buy', quantity: 6, type: 'limit', limit: 100 });
        order({ side: 'buy', quantity: 6, type: 'limit', limit: 100 });
        order({ side: 'sell', quantity: 1, type: 'limit', limit: 110 });
        order({ side: 'sell', quantity: 1, type: 'stop', stop: 90 });
      },
      opening: { cash: 1000, positions: { X: { quantity: 1, price: 100 } } },
    });
    expect(kinds(session.push(step(0, 100)).events)).toEqual([
      ['submitted', 1],
      ['insufficient_funds', 2],
      ['submitted', 3],
      ['short_not_allowed', 4],
    ]);
  });

  it('a limit is rounded to a tick that is no worse, a stop to one that is no nearer', () => {
    const session = scripted({
      onStep: (_, { order }) => {
        order({ side: 'buy', quantity: 1, type: 'limit', limit: 90.3 });
        order({ side: 'sell', quantity: 0.3, type: 'stop_limit', stop: 80.3, limit: 80.3 });
      },
      opening: { cash: 1000, positions: { X: { quantity: 1, price: 100 } } },
    });
    session.push(step(0, 100));
    expect(session.outbox()).toMatchObject([
      { place: { limit: 90 } },
      { place: { quantity: 0.3, limit: 80.5, stop: 80 } },
    ]);
  });
});

describe('a purchase can be sold completely', () => {
  const bought = (quantity: number, filled: number, fee_units: number): TradingSession => {
    const session = scripted({
      onStep: (at, { order }) => order({ side: at === 0 ? 'buy' : 'sell', quantity }),
    });
    session.push(step(0, 100));
    session.report(report(1, { status: 'filled', filled, cost: 100 * filled, fee_units }));
    return session;
  };

  it('when the order was rounded down to the step', () => {
    const session = bought(2.57, 2.5, 0);
    session.push(step(1, 100));
    expect(session.outbox()).toMatchObject([{ place: { side: 'sell', quantity: 2.5 } }]);
  });

  it('when a fee was taken from its units', () => {
    const session = bought(3, 3, 0.03);
    session.push(step(1, 100));
    expect(session.outbox()).toMatchObject([{ place: { side: 'sell', quantity: 2.9 } }]);
    // Only what fees have taken, and what no other order sells.
    expect(kinds(session.push(step(2, 100)).events)).toEqual([['short_not_allowed', 3]]);
  });
});

test('no order has more units than the position, however many steps those are', () => {
  const units = 99_999_999_999.95;
  const session = scripted({
    onStep: (_, { target }) => target('X', 0),
    rules: {
      ...RULES,
      instruments: { ...RULES.instruments, X: { step: 1, min_quantity: 1, min_value: 1, tick: 0 } },
    },
    opening: { cash: 0, positions: { X: { quantity: units, price: 0.00001 } } },
  });
  session.push(step(0, 0.00001));
  expect(session.outbox()).toMatchObject([
    { place: { side: 'sell', quantity: Math.floor(units) } },
  ]);
});

describe('a target weight', () => {
  it('is sized at the close, limited by cash including fees, and rounded down', () => {
    const session = scripted({
      onStep: (_, { target }) => target('X', 1),
      config: { fees: { model: 'percent', rate: 0.01, min: 0 } },
    });
    const { state } = session.push(step(0, 30));
    expect(state.working).toMatchObject([{ weight: 1, quantity: 33 }]);
    expect(session.outbox()).toMatchObject([{ place: { type: 'market', quantity: 33 } }]);
  });

  it('waits until the target it replaces has ended, which may still be filled', () => {
    const session = scripted({
      onStep: (at, { target }) => target('X', at === 0 ? 1 : 0.5),
    });
    session.push(step(0, 100));
    const { events, state } = session.push(step(1, 100));
    expect(kinds(events)).toEqual([
      ['submitted', 2],
      ['canceled_by_strategy', 1],
    ]);
    expect(state.working).toMatchObject([
      { order: 1, pending_cancel: true },
      { order: 2, weight: 0.5 },
    ]);
    expect(state.working[1]).not.toHaveProperty('client_order_id');
    expect(placed(session)).toEqual(['cancel']);
    session.report(report(1, { status: 'canceled', filled: 8, cost: 800 }));
    expect(session.outbox()).toMatchObject([{ place: { order: 2, side: 'sell', quantity: 3 } }]);
  });

  it('replaces an unsent target without a request to the venue', () => {
    const session = scripted({
      onStep: (_, { target }) => {
        target('X', 1);
        target('X', 0.5);
      },
    });
    session.push(step(0, 100));
    expect(session.outbox()).toMatchObject([{ place: { order: 2, quantity: 5 } }]);
  });

  it('may spend the proceeds of another target and use its instrument slot', () => {
    const session = scripted({
      onStep: (_, { target }) => {
        target('X', 0);
        target('Y', 1);
      },
      config: { risk: { ...NO_RISK_LIMITS, max_instruments: 1 } },
      opening: { cash: 0, positions: { X: { quantity: 10.05, price: 100 } } },
    });
    session.push(step(0, 100, 50));
    expect(session.outbox()).toMatchObject([
      { place: { symbol: 'X', side: 'sell', quantity: 10 } },
      { place: { symbol: 'Y', side: 'buy', quantity: 20 } },
    ]);
  });

  it('waits for the first bar of an instrument without bars', () => {
    const session = scripted({
      onStep: (at, { target }) => at === 0 && target('Y', 0.5),
      config: { risk: { ...NO_RISK_LIMITS, max_order_value: 600 } },
    });
    expect(kinds(session.push(step(0, 100)).events)).toEqual([['submitted', 1]]);
    expect(session.outbox()).toEqual([]);
    session.push(step(1, 100, 7));
    expect(session.outbox()).toMatchObject([{ place: { symbol: 'Y', quantity: 71.428 } }]);
  });

  it('denies a target that the position has nearly reached', () => {
    const session = scripted({
      onStep: (_, { target }) => {
        target('X', 0);
        target('Y', 0);
      },
      opening: { cash: 0, positions: { X: { quantity: 0.05, price: 100 } } },
    });
    expect(kinds(session.push(step(0, 100, 1)).events)).toEqual([
      ['below_minimum', 1],
      ['quantity_rounds_to_zero', 2],
    ]);
  });
});

describe('reported fees', () => {
  const bought = (): TradingSession => {
    const session = scripted({
      onStep: (at, { order }) => at === 0 && order({ side: 'buy', quantity: 4 }),
    });
    session.push(step(0, 100));
    return session;
  };

  it('in units leave the account with the holdings of the venue', () => {
    const { events, state } = bought().report(
      report(1, { status: 'filled', filled: 4, cost: 400, fee: 1, fee_units: 0.25 }),
    );
    expect(events).toMatchObject([
      { quantity: 3.75, price: 100, fee: 26, position: 3.75, cash: 599 },
    ]);
    expect(state).toMatchObject({ cash: 599, positions: { X: 3.75 } });
  });

  it('that arrive after their fills are booked on arrival, in money or in units', () => {
    const session = bought();
    session.report(report(1, { status: 'filled', filled: 4, cost: 400 }));
    const units = session.report(
      report(1, { status: 'filled', filled: 4, cost: 400, fee_units: 0.25 }),
    );
    expect(units.events).toMatchObject([
      { kind: 'order.fee', quantity: -0.25, fee: 25, position: 3.75, cash: 600 },
    ]);
    const money = session.report(
      report(1, { status: 'filled', filled: 4, cost: 400, fee: 2, fee_units: 0.25 }),
    );
    expect(money.events).toMatchObject([
      { kind: 'order.fee', quantity: 0, fee: 2, position: 3.75, cash: 598 },
    ]);
    expect(session.result().result.fees).toBe(27);
  });

  it('belong to the trade of their fill, even if another is open when they arrive', () => {
    const session = scripted({
      onStep: (at, { order }) => {
        if (at < 3) order({ side: at === 1 ? 'sell' : 'buy', quantity: 4 });
        if (at === 3) order({ side: 'buy', quantity: 1, type: 'limit', limit: 50 });
      },
    });
    const fills = [
      { status: 'filled', filled: 4, cost: 400 },
      { status: 'filled', filled: 4, cost: 440 },
      { status: 'filled', filled: 4, cost: 420 },
    ] as const;
    for (const [at, fill] of fills.entries()) {
      session.push(step(at, 100));
      session.report(report(at + 1, fill));
      // The fee of the sale arrives while no trade is open.
      if (at === 1) session.report(report(2, { ...fill, fee: 3 }));
    }
    // The fee of the first purchase arrives while the next trade is open.
    session.report(report(1, { ...fills[0], fee: 2 }));
    session.report(report(3, { ...fills[2], fee: 5 }));
    session.push(step(3, 105));
    session.report(report(4, { status: 'canceled', fee: 0.5 }));
    const { trades, openTrades, fees, otherFees, cash } = session.result().result;
    expect(trades).toMatchObject([{ id: 1, fees: 5, pnl: 35 }]);
    expect(openTrades).toMatchObject([{ id: 2, fees: 5, pnl: -5 }]);
    expect({ fees, otherFees, cash }).toEqual({ fees: 10.5, otherFees: 0.5, cash: 609.5 });
  });

  it('in units reduce the position and belong to the trade of their fill', () => {
    const session = scripted({
      onStep: (at, { order }) => {
        if (at < 3) order({ side: at === 1 ? 'sell' : 'buy', quantity: at === 2 ? 2 : 4 });
      },
    });
    for (const [at, filled] of [4, 4, 2].entries()) {
      session.push(step(at, 100));
      session.report(report(at + 1, { status: 'filled', filled, cost: filled * 100 }));
    }
    session.report(report(2, { status: 'filled', filled: 4, cost: 400, fee_units: 0.5 }));
    const { trades, openTrades, positions, cash } = session.result().result;
    expect({ positions, cash }).toEqual({ positions: { X: 1.5 }, cash: 800 });
    expect(trades).toMatchObject([{ fees: 50, pnl: -50 }]);
    expect(openTrades).toMatchObject([{ fees: 0, pnl: 0 }]);
  });

  it('may be refunded', () => {
    const session = bought();
    const { state } = session.report(report(1, { filled: 2, cost: 200, fee: -1 }));
    expect(state.cash).toBe(801);
    expect(session.report(report(1, { filled: 2, cost: 200 })).state.cash).toBe(801);
  });
});

describe('while a session denies orders', () => {
  const reasons = [
    'license_invalid',
    'control_unreachable',
    'reconcile_mismatch',
    'stopping',
  ] as const;
  const everyBar: Options = {
    onStep: (at, { order, broker }) => {
      if (at === 2) broker.cancel(broker.working()[0]!);
      order({ side: 'buy', quantity: 1, type: 'limit', limit: 90 });
    },
  };

  it.each(reasons)('for %s, new orders are denied and working ones continue', async (reason) => {
    const session = scripted(everyBar);
    session.push(step(0, 100));
    expect(session.deny(reason)).toEqual({ events: [], state: session.state() });
    expect(kinds(session.push(step(1, 100)).events)).toEqual([[reason, 2]]);
    expect(kinds(session.push(step(2, 100)).events)).toEqual([
      ['canceled_by_strategy', 1],
      [reason, 3],
    ]);
    session.deny(null);
    expect(kinds(session.push(step(3, 100)).events)).toEqual([['submitted', 4]]);
  });

  it('a paper session behaves the same and resumes to the same state', async () => {
    const setup = paperSetup(everyBar);
    const session = new TradingSession(setup);
    session.push(step(0, 100));
    session.deny('license_invalid');
    expect(kinds(session.push(step(1, 100)).events)).toEqual([['license_invalid', 2]]);
    session.deny(null);
    session.push(step(2, 80));
    session.halt();
    const resumed = await TradingSession.resume(setup, [
      { kind: 'data.bars', step: step(0, 100) },
      { kind: 'control.denying', reason: 'license_invalid' },
      step(1, 100),
      { kind: 'control.denying', reason: null },
      { kind: 'data.bars', step: step(2, 80) },
      { kind: 'control.halted' },
    ]);
    expect(resumed.events()).toEqual(session.events());
    expect(resumed.state()).toEqual(session.state());
    const input = { kind: 'venue.report', report: report(1, {}) } as const;
    await expect(TradingSession.resume(setup, [input])).rejects.toThrow(RangeError);
  });
});

describe('an ended session', () => {
  it('after a halt requests cancels and accepts reports until all orders have ended', () => {
    const session = scripted({
      onStep: (_, { order, target }) => {
        order({ side: 'buy', quantity: 1, type: 'limit', limit: 90 });
        target('Y', 0.5);
      },
    });
    session.push(step(0, 100));
    const { events, state } = session.halt();
    // The target was never sent, because it has no bar to be sized at.
    expect(events).toMatchObject([
      { kind: 'order.pending_cancel', reason: 'halted', order: 1 },
      { kind: 'order.canceled', reason: 'halted', order: 2 },
    ]);
    expect(state).toMatchObject({
      status: 'halted',
      working: [{ order: 1, pending_cancel: true }],
    });
    expect(session.halt()).toEqual({ events: [], state });
    expect(placed(session)).toEqual(['cancel']);
    expect(() => session.push(step(1, 100))).toThrow('is halted');
    const part = session.report(report(1, { filled: 0.5, cost: 45 }));
    expect(part.state).toMatchObject({ positions: { X: 0.5 }, working: [{ filled: 0.5 }] });
    const last = session.report(report(1, { status: 'canceled', filled: 0.5, cost: 45 }));
    expect(kinds(last.events)).toEqual([['halted', 1]]);
    expect(last.state).toMatchObject({ status: 'halted', working: [] });
  });

  it('after a failure of its strategy sends no further orders', async () => {
    const options: Options = {
      onStep: (_, { order }) => {
        order({ side: 'buy', quantity: 1 });
        throw new Error('boom');
      },
    };
    const session = scripted(options);
    expect(session.push(step(0, 100)).state).toMatchObject({ status: 'failed', working: [{}] });
    expect(session.outbox()).toEqual([]);
    session.halt();
    expect(placed(session)).toEqual(['cancel']);
    const resumed = await TradingSession.resume(setupOf(options), [
      { kind: 'data.bars', step: step(0, 100) },
      { kind: 'control.halted' },
      { kind: 'venue.report', report: report(1, { status: 'canceled' }) },
    ]);
    session.report(report(1, { status: 'canceled' }));
    expect(resumed.state()).toEqual(session.state());
    expect(resumed.state()).toMatchObject({ status: 'failed', working: [] });
  });
});

describe('an opening account', () => {
  const opening = { cash: 400, positions: { X: { quantity: 6, price: 100 } } };

  it.each(['paper', 'venue'])('is the initial account of a %s session', (where) => {
    const drawdown: Options = {
      onStep: (_, { order }) => order({ side: 'buy', quantity: 1 }),
      config: { cash: 5, risk: { ...NO_RISK_LIMITS, max_drawdown_pct: 0.1 } },
      opening,
    };
    const setup = where === 'paper' ? paperSetup(drawdown) : setupOf(drawdown);
    const session = new TradingSession(setup);
    expect(session.state()).toEqual({
      status: 'running',
      time: null,
      seq: 0,
      cash: 400,
      equity: 1000,
      positions: { X: 6 },
      working: [],
      carry: {
        marks: { X: 100 },
        risk: { peak_equity: 1000, day_start_equity: 1000, day: null },
      },
    });
    const { events, state } = session.push(step(0, 80));
    expect(state.equity).toBe(880);
    expect(events).toMatchObject([{ kind: 'order.denied', reason: 'max_drawdown_pct' }]);
    const { result } = session.result();
    expect(result).toMatchObject({ initialCash: 1000, stepsInMarket: 1 });
    expect(result.openTrades).toMatchObject([
      { entry_time: START, bars: 0, quantity: 6, entry_price: 100, exit_price: 80, pnl: -120 },
    ]);
  });

  const DATE = new Date(START).toISOString().slice(0, 10);
  const EVE = new Date(START - DAY).toISOString().slice(0, 10);
  const lost = { peak_equity: 1000, day_start_equity: 900, day: DATE };

  it.each([
    ['the drawdown', { max_drawdown_pct: 0.3 }, DATE, 'max_drawdown_pct'],
    ['the loss of the same day', { max_daily_loss_pct: 0.3 }, DATE, 'max_daily_loss_pct'],
    ['no loss of another day', { max_daily_loss_pct: 0.3 }, EVE, undefined],
    ['no drawdown within its limit', { max_drawdown_pct: 0.41 }, DATE, undefined],
  ])('carries over %s of the earlier account', (_, limits, day, reason) => {
    const session = new TradingSession(
      setupOf({
        onStep: (_step, { order }) => order({ side: 'buy', quantity: 1 }),
        config: { risk: { ...NO_RISK_LIMITS, ...limits } },
        opening: { cash: 600, positions: {}, risk: { ...lost, day } },
      }),
    );
    const { events } = session.push(step(0, 10));
    const reasons = events.map((event) => ('reason' in event ? event.reason : undefined));
    expect(reasons.find((one) => one !== undefined)).toBe(reason);
  });

  it('carries over the state of limits as in one session', () => {
    const limits = { max_drawdown_pct: 0.5, max_daily_loss_pct: 0.5 };
    const options: Options = {
      onStep: (at, { order }) => at === 0 && order({ side: 'buy', quantity: 8 }),
      config: { risk: { ...NO_RISK_LIMITS, ...limits } },
    };
    const whole = new TradingSession(paperSetup(options));
    const closes = [100, 100, 130, 60, 70, 50];
    for (const [at, close] of closes.entries()) whole.push(step(at, close));
    const first = new TradingSession(paperSetup(options));
    for (const [at, close] of closes.slice(0, 4).entries()) first.push(step(at, close));
    const state = first.state();
    const left = openingFrom(state, () => undefined, null);
    expect(left.positions).toEqual({ X: { quantity: 8, price: 60 } });
    const second = new TradingSession(paperSetup({ ...options, onStep: () => {}, opening: left }));
    expect(second.state().carry).toEqual(state.carry);
    for (const [at, close] of closes.entries()) if (at >= 4) second.push(step(at, close));
    expect(second.state().carry).toEqual(whole.state().carry);
    expect(second.state().carry!.risk.peak_equity).toBe(1240);
  });

  it('carries over executions that count toward the latch', () => {
    const repeated_execution = { count: 3, seconds: 3 * 86_400 };
    const optionalLimits = { repeated_execution };
    const options: Options = {
      onStep: (_step, { order }) => order({ side: 'buy', quantity: 1 }),
      config: { optionalLimits },
    };
    const first = new TradingSession(paperSetup(options));
    for (const at of [0, 1, 2]) first.push(step(at, 10));
    const { executions } = first.state().carry!.risk;
    expect(executions).toEqual([
      { symbol: 'X', side: 'buy', times: [START + DAY, START + 2 * DAY] },
    ]);
    const left = openingFrom(first.state(), () => undefined, null);
    const second = new TradingSession(paperSetup({ ...options, opening: left }));
    second.push(step(3, 10));
    const { events } = second.push(step(4, 10));
    expect(events.map(({ kind }) => kind)).toContain('account.latched');
  });

  it('rejects positions outside the universe', () => {
    const strange = { cash: 400, positions: { Z: { quantity: 6, price: 100 } } };
    expect(() => scripted({ onStep: () => {}, opening: strange })).toThrow(RangeError);
  });
});

test('report throws for invalid reports and changes nothing', () => {
  const session = scripted({ onStep: (_, { order }) => order({ side: 'buy', quantity: 1 }) });
  session.push(step(0, 100));
  const before = session.state();
  const wrong: readonly VenueReport[] = [
    report(2, {}),
    report(0, {}),
    report(1, { client_order_id: clientOrderId('another', 1) }),
    ...(['filled', 'cost', 'fee', 'fee_units', 'time'] as const).map((name) =>
      report(1, { [name]: Number.NaN }),
    ),
    report(1, { filled: -1 }),
    report(1, { time: 9e15 }),
  ];
  for (const one of wrong) expect(() => session.report(one)).toThrow(RangeError);
  expect(session.state()).toEqual(before);
  expect(placed(session)).toEqual([1]);
});

test('a margin account is rejected at a venue', () => {
  const margin = { onStep: () => {}, config: { account: MARGIN } };
  expect(() => scripted(margin)).toThrow(expect.objectContaining({ code: 'invalid_spec' }));
});

/** Random events of the venue, the market and administrators. */
type Happening =
  | { readonly kind: 'bars'; readonly x: number | undefined; readonly y: number | undefined }
  /** Report on a requested order, ended or not; fills `share` of the rest. */
  | {
      readonly kind: 'at the venue';
      readonly which: number;
      readonly share: number;
      readonly price: number;
      readonly fee: 'none' | 'money' | 'units';
      readonly status: 'as it was' | 'canceled' | 'rejected' | 'expired';
      readonly isReported: boolean;
    }
  /** Delivers a past report again, or for the first time. */
  | { readonly kind: 'late report'; readonly which: number }
  | { readonly kind: 'deny'; readonly reason: DenyReason | null }
  | { readonly kind: 'halt' };

const price = fc.integer({ min: 15, max: 25 });
const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 50,
    arbitrary: fc.record({
      kind: fc.constant('bars' as const),
      x: price,
      y: fc.option(price, { nil: undefined }),
    }),
  },
  {
    weight: 80,
    arbitrary: fc.record({
      kind: fc.constant('at the venue' as const),
      which: fc.nat(9),
      share: fc.constantFrom(0, 0, 0.3, 1, 1),
      price,
      fee: fc.constantFrom('none', 'money', 'units'),
      status: fc.constantFrom('as it was', 'as it was', 'canceled', 'rejected', 'expired'),
      isReported: fc.boolean(),
    }),
  },
  {
    weight: 40,
    arbitrary: fc.record({ kind: fc.constant('late report' as const), which: fc.nat(99) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('deny' as const),
      reason: fc.constantFrom('stopping', 'license_invalid', null, null, null, null),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'halt' as const }) },
);

type Deed =
  | { readonly kind: 'order'; readonly request: Request }
  | { readonly kind: 'target'; readonly symbol: 'X' | 'Y'; readonly weight: number }
  | { readonly kind: 'cancel'; readonly which: number };

const symbol = fc.constantFrom('X' as const, 'Y' as const);
const side = fc.constantFrom('buy' as const, 'sell' as const);
const quantity = fc.integer({ min: 1, max: 60 }).map((sevenths) => sevenths / 7);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({
    kind: fc.constant('order' as const),
    request: fc.oneof(
      fc.record({ symbol, side, quantity, reduceOnly: fc.boolean() }),
      fc.record({ symbol, side, quantity, type: fc.constant('limit' as const), limit: price }),
      fc.record({ symbol, side, quantity, type: fc.constant('stop' as const), stop: price }),
    ),
  }),
  fc.record({
    kind: fc.constant('target' as const),
    symbol,
    weight: fc.constantFrom(0, 0.3, 1),
  }),
  fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(3) }),
);

interface RecordedInput {
  readonly input: SessionInput;
  readonly hash: string;
  readonly state: SessionState;
}

/** A session after these events, with its inputs and the orders that the venue knows. */
class Play {
  readonly setup: SessionSetup;
  readonly session: TradingSession;
  readonly inputs: RecordedInput[] = [];
  readonly events: OrderEvent[] = [];
  readonly orders = new Map<number, VenueOrder>();
  /** Latest report of each order, delivered or not. */
  readonly truth = new Map<number, VenueReport>();
  readonly reports: VenueReport[] = [];
  readonly reported = new Set<number>();
  #days = 0;

  constructor(deeds: readonly (readonly Deed[])[]) {
    this.setup = setupOf({
      onStep: (at, { order, target, broker }) => {
        for (const one of deeds[at % deeds.length]!) {
          if (one.kind === 'order') order(one.request);
          else if (one.kind === 'target') target(one.symbol, one.weight);
          else {
            const working = broker.working()[one.which];
            if (working !== undefined) broker.cancel(working);
          }
        }
      },
      onFill: () => {},
      config: {
        fees: { model: 'percent', rate: 0.001, min: 0 },
        risk: { ...NO_RISK_LIMITS, max_position_pct: 0.8, max_order_qty: 40 },
      },
      opening: { cash: 700, positions: { X: { quantity: 15, price: 20 } } },
    });
    this.session = new TradingSession(this.setup);
  }

  happen(one: Happening): void {
    if (one.kind === 'bars') {
      if (this.session.state().status !== 'running') return;
      this.#days += 1;
      const taken = step(this.#days, one.x, one.y);
      this.#record({ kind: 'data.bars', step: taken }, () => this.session.push(taken));
    } else if (one.kind === 'deny') {
      const { reason } = one;
      this.#record({ kind: 'control.denying', reason }, () => this.session.deny(reason));
    } else if (one.kind === 'halt') {
      this.#record({ kind: 'control.halted' }, () => this.session.halt());
    } else if (one.kind === 'late report') {
      const report_ = this.reports[one.which % Math.max(1, this.reports.length)];
      if (report_ !== undefined) this.report(report_);
    } else this.#change(one);
  }

  report(one: VenueReport): void {
    this.reported.add(one.order);
    this.#record({ kind: 'venue.report', report: one }, () => this.session.report(one));
  }

  /** The venue has each requested order at once, but may report on it much later. */
  #record(input: SessionInput, run: () => ReturnType<TradingSession['push']>): void {
    const { events, state } = run();
    this.events.push(...events);
    this.inputs.push({ input, state, hash: stateHash(state) });
    for (const request of this.session.outbox()) {
      if ('place' in request) this.orders.set(request.place.order, request.place);
    }
  }

  #change({
    which,
    share,
    price: at,
    fee,
    status,
    isReported,
  }: Happening & { kind: 'at the venue' }) {
    const order = [...this.orders.values()][which % Math.max(1, this.orders.size)];
    if (order === undefined) return;
    const before = this.truth.get(order.order) ?? report(order.order, {});
    const units = share * (order.quantity - before.filled);
    const filled = share === 1 ? order.quantity : before.filled + units;
    const after: VenueReport = {
      ...before,
      filled,
      cost: before.cost + units * at,
      // Includes earlier fills.
      fee: before.fee + (fee === 'money' ? 0.01 : 0) * filled,
      fee_units: before.fee_units + (fee === 'units' ? 0.001 : 0) * filled,
      status:
        filled === order.quantity ? 'filled' : status === 'as it was' ? before.status : status,
      time: before.time + 1000,
    };
    this.truth.set(order.order, after);
    this.reports.push(after);
    if (isReported) this.report(after);
  }
}

const scenario = fc.record({
  deeds: fc.array(fc.array(deed, { maxLength: 3 }), { minLength: 1, maxLength: 6 }),
  happenings: fc.array(happening, { minLength: 30, maxLength: 60 }),
});

test('too many executions latch the session, and the latch survives a resume', async () => {
  const setup = setupOf({
    onStep: (_at, { order }) => order({ side: 'buy', quantity: 1, type: 'limit', limit: 99 }),
    config: { optionalLimits: { repeated_execution: { count: 2, seconds: 60 } } },
  });
  const inputs: SessionInput[] = [];
  const session = new TradingSession(setup);
  const bars = (day: number): unknown[] => {
    inputs.push({ kind: 'data.bars', step: step(day, 100) });
    return kinds(session.push(step(day, 100)).events);
  };
  const reported = (order: number, more: Partial<VenueReport>): unknown[] => {
    inputs.push({ kind: 'venue.report', report: report(order, more) });
    return kinds(session.report(report(order, more)).events);
  };
  expect([bars(0), bars(1), bars(2)]).toEqual([1, 2, 3].map((id) => [['submitted', id]]));
  expect(reported(1, { filled: 0.5, cost: 49 })).toEqual([['filled', 1]]);
  expect(reported(1, { filled: 1, cost: 98 })).toEqual([['filled', 1]]);
  // Too late by the clock of the venue to count with the first.
  expect(reported(2, { filled: 1, cost: 98, time: NOON + 61_000 })).toEqual([['filled', 2]]);
  expect(bars(3)).toEqual([['submitted', 4]]);
  const latching = { filled: 0.1, cost: 9.8, time: NOON + 121_000 };
  expect(reported(3, latching)).toEqual([
    ['filled', 3],
    ['t.latched', 3],
  ]);
  expect(bars(4)).toEqual([['repeated_execution', 5]]);
  expect(session.state().working.map(({ order }) => order)).toEqual([3, 4]);
  const resumed = await TradingSession.resume(setup, inputs);
  expect(resumed.events()).toEqual(session.events());
  expect(kinds(resumed.push(step(5, 100)).events)).toEqual([['repeated_execution', 6]]);
});

function always(claim: (play: Play) => void | Promise<void>, few = 15): Promise<void> {
  return fc.assert(
    fc.asyncProperty(scenario, async ({ deeds, happenings }) => {
      const play = new Play(deeds);
      for (const one of happenings) play.happen(one);
      await claim(play);
    }),
    { numRuns: runs(few) },
  );
}

describe('random sequences of events', () => {
  it('cash and positions equal the sum of all reports', () =>
    always((play) => {
      for (const one of play.reports.toReversed()) play.report(one);
      const { cash: start, positions } = play.setup.opening!;
      let cash = start;
      const held: Record<string, number> = { X: positions['X']!.quantity, Y: 0 };
      for (const { order, filled, cost, fee, fee_units } of play.truth.values()) {
        const { symbol: of, side: way } = play.orders.get(order)!;
        const sign = way === 'buy' ? 1 : -1;
        cash -= sign * cost + fee;
        held[of]! += sign * filled - fee_units;
      }
      const state = play.session.state();
      expect(state.cash).toBeCloseTo(cash, 6);
      for (const [of, units] of Object.entries(held)) {
        expect(state.positions[of] ?? 0).toBeCloseTo(units, 8);
      }
      const booked = play.events.filter((event) => 'cash' in event);
      expect(booked.at(-1)?.cash ?? start).toBe(state.cash);
      const { result } = play.session.result();
      const made = [...result.trades, ...result.openTrades].reduce((sum, { pnl }) => sum + pnl, 0);
      expect(made - result.otherFees).toBeCloseTo(state.equity - result.initialCash, 6);
    }));

  it('a session resumed from any prefix of its inputs has the same state', () =>
    always(async (play) => {
      const { inputs, setup, session } = play;
      for (const count of new Set([inputs.length, inputs.length >> 1, inputs.length - 1])) {
        if (count <= 0) continue;
        const resumed = await TradingSession.resume(
          setup,
          inputs.slice(0, count).map(({ input }) => input),
        );
        expect(resumed.state()).toEqual(inputs[count - 1]!.state);
        expect(stateHash(resumed.state())).toBe(inputs[count - 1]!.hash);
        if (count < inputs.length) continue;
        expect(resumed.events()).toEqual(session.events());
        expect(resumed.outbox()).toEqual(session.outbox());
      }
    }, 40));

  it('the outbox holds unreported orders and unconfirmed cancels', () =>
    always(({ session, reported }) => {
      const { working, status } = session.state();
      const there = working.filter((order) => order.client_order_id !== undefined);
      const unknown = there.filter((order) => !order.pending_cancel && !reported.has(order.order));
      const { cancels = [], places = [] } = Object.groupBy(session.outbox(), (request) =>
        'cancel' in request ? 'cancels' : 'places',
      );
      expect(cancels.map((request) => 'cancel' in request && request.cancel.order)).toEqual(
        there.filter((order) => order.pending_cancel).map(({ order }) => order),
      );
      expect(places.map((request) => 'place' in request && request.place.order)).toEqual(
        status === 'running' ? unknown.map(({ order }) => order) : [],
      );
    }));

  it('every sent order respects the venue and the limits, and none is sent while denying', () =>
    always(({ inputs, orders }) => {
      for (const { symbol: of, quantity: units, limit, stop } of orders.values()) {
        const { step: grid, min_quantity, tick } = RULES.instruments[of]!;
        expect(units).toBeGreaterThanOrEqual(min_quantity);
        expect(units).toBeLessThanOrEqual(40);
        for (const [value, every] of [
          [units, grid],
          [limit, tick],
          [stop, tick],
        ] as const) {
          const multiple = value === undefined || every === 0 ? 0 : value / every;
          expect(Math.abs(multiple - Math.round(multiple))).toBeLessThan(1e-6);
        }
      }
      let isDenying = false;
      let newest = 0;
      for (const { input, state } of inputs) {
        if (input.kind === 'control.denying') isDenying = input.reason !== null;
        const sent = state.working.filter((order) => order.client_order_id !== undefined);
        const last = Math.max(newest, ...sent.map(({ order }) => order));
        if (isDenying) expect(last).toBe(newest);
        newest = last;
      }
    }));
});
