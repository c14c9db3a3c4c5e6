/** Supervision of a running session: firm thresholds, permits for one order, and lifted latches. */
import { describe, expect, it } from 'vitest';
import { NO_RISK_LIMITS, type OptionalLimits, type RiskLimits } from '../../src/engine/config.ts';
import type { OrderRequest } from '../../src/engine/orders/order.ts';
import type { Step } from '../../src/engine/steps.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import { inputEvent, parseInput, type SessionInput } from '../../src/trading/session-events.ts';
import { decideSupervision, type SupervisionInput } from '../../src/trading/session-supervision.ts';
import { stateHash } from '../../src/events/session-state.ts';
import { TradingSession } from '../../src/trading/trading-session.ts';
import { ENGINE_DEFAULTS, MARGIN, START } from '../engine/market.ts';

const MINUTE = 60_000;
const PERMIT = {
  override_id: 'o-1',
  symbol: 'X',
  side: 'buy',
  max_quantity: 50,
  worst_price: null,
  controls: ['max_order_qty', 'threshold_order_value'],
  expires_at: START,
} as const;

type Wish = Omit<OrderRequest, 'instrument' | 'side'> & { readonly sell?: true; readonly y?: true };

describe('firm thresholds', () => {
  it('deny orders beyond them in addition to the limits of the bot, and allow exits', async () => {
    const s = newSession({}, [
      [{ quantity: 10 }],
      [{ quantity: 10 }, { quantity: 11 }, { quantity: 31, sell: true }],
      [
        { quantity: 5, y: true },
        { quantity: 9, y: true },
      ],
      [{ quantity: 10, sell: true }],
    ]);
    s.step();
    s.supervise({
      kind: 'risk.thresholds_set',
      thresholds: {
        max_order_value: { value: 3000 },
        max_gross_exposure: { value: 2500 },
        instruments: {
          X: { max_order_value: { value: 1000 } },
          Y: { max_order_qty: { value: 8 } },
        },
      },
    });
    s.step();
    s.step();
    s.step();
    expect(s.ends()).toEqual([
      // 11 X exceed the order limit with 1,100. With 10 held and 10 working, selling 31 goes short
      // beyond it.
      [3, 'denied', 'threshold_order_value'],
      [4, 'denied', 'threshold_order_value'],
      // 20 X and 5 Y reach the limit of 2,500 exactly.
      [6, 'denied', 'threshold_order_qty'],
    ]);
    await s.expectSameOnResume();
  });

  it('limit the exposure of all working orders together, and the loss of a day', async () => {
    const s = newSession({}, [
      [{ quantity: 10 }],
      [{ quantity: 10, y: true, type: 'limit', limit: 50 }, { quantity: 6 }, { quantity: 5 }],
      [{ quantity: 1 }, { quantity: 1, sell: true }],
    ]);
    s.supervise({
      kind: 'risk.thresholds_set',
      thresholds: { max_gross_exposure: { value: 2500 }, max_daily_loss: { value: 90 } },
    });
    s.step();
    s.step();
    s.step(90);
    expect(s.ends()).toEqual([
      [3, 'denied', 'threshold_gross_exposure'],
      [5, 'denied', 'threshold_daily_loss'],
    ]);
    await s.expectSameOnResume();
  });

  it('allow one full exit after a loss, and no reversal of the position', async () => {
    const s = newSession({}, [
      [{ quantity: 10 }],
      [],
      [
        { quantity: 10, sell: true, type: 'limit', limit: 90 },
        { quantity: 10, sell: true, type: 'limit', limit: 90 },
      ],
      [{ quantity: 10, sell: true }],
    ]);
    s.step();
    s.step();
    s.step(80);
    // Either of the two sales may close the position, and the other one would open another.
    s.supervise({ kind: 'risk.thresholds_set', thresholds: { max_daily_loss: { value: 90 } } });
    s.step(80);
    expect(s.ends()).toEqual([
      [3, 'canceled', 'threshold_daily_loss'],
      [4, 'denied', 'threshold_daily_loss'],
    ]);
    await s.expectSameOnResume();
  });

  it('cancel working orders beyond them when they are set, newest first', async () => {
    const away = { type: 'limit', limit: 50 } as const;
    const s = newSession({}, [[10, 20, 30].map((quantity) => ({ quantity, ...away }))]);
    s.step();
    s.supervise({
      kind: 'risk.thresholds_set',
      thresholds: { max_gross_exposure: { value: 4000 } },
    });
    expect(s.ends()).toEqual([[3, 'canceled', 'threshold_gross_exposure']]);
    await s.expectSameOnResume();
  });

  it('apply while a target waits for the first bar of its instrument', () => {
    const bar = { open: 100, high: 100, low: 100, close: 100, volume: 1 };
    const reasons: unknown[] = [];
    const strategy = defineStrategy({
      name: 'waiting',
      description: 'wants what has no price yet',
      params: {},
      create: ({ instruments: [x, y], broker }) => ({
        onBar() {
          broker.target(y!, 0.02);
          for (const quantity of [7, 8])
            reasons.push(broker.order({ instrument: x, side: 'buy', quantity }).reason);
        },
      }),
    });
    const config = { ...ENGINE_DEFAULTS, cash: 10_000, account: MARGIN, risk: NO_RISK_LIMITS };
    const symbols = ['X', 'Y'];
    const session = new TradingSession({
      symbols,
      strategy,
      params: {},
      config,
      timeoutMs: Infinity,
    });
    const thresholds = { max_gross_exposure: { value: 900 } };
    session.supervise({ kind: 'risk.thresholds_set', thresholds });
    session.push({ time: START, bars: { X: bar } });
    expect(reasons).toEqual([undefined, 'threshold_gross_exposure']);
  });

  it('limit messages per second but not cancels', async () => {
    const s = newSession({}, [[{ quantity: 1 }, { quantity: 1 }], [{ quantity: 1 }]]);
    const max_messages_per_second = { value: 1 };
    s.supervise({ kind: 'risk.thresholds_set', thresholds: { max_messages_per_second } });
    s.step();
    s.supervise({ kind: 'risk.thresholds_set', thresholds: {} });
    s.step();
    expect(s.ends()).toEqual([[2, 'denied', 'threshold_messages']]);
    await s.expectSameOnResume();
  });
});

describe('a permit', () => {
  it('allows one matching order and no other', async () => {
    const s = newSession({ max_order_qty: 20 }, [
      [{ quantity: 51 }, { quantity: 30, sell: true }, { quantity: 30, y: true }],
      [{ quantity: 50 }, { quantity: 50 }],
    ]);
    s.supervise({ kind: 'risk.override_granted', permit: PERMIT });
    s.step();
    const { used } = s.step();
    expect(used).toEqual([
      { override_id: 'o-1', order: 4, control: 'max_order_qty', quantity: 50, price: 100 },
    ]);
    // A used permit cannot be granted again.
    s.supervise({ kind: 'risk.override_granted', permit: PERMIT });
    expect(s.session.supervised).toMatchObject({ open: [], used: ['o-1'] });
    expect(s.ends().map(([order]) => order)).toEqual([1, 2, 3, 5]);
    await s.expectSameOnResume();
  });

  it('overrides only the limits it names, at no worse price, until it ends', async () => {
    const wish = { quantity: 30 };
    const s = newSession({ max_order_qty: 20, max_order_value: 2900 }, [[wish], [wish], [wish]]);
    s.supervise({ kind: 'risk.override_granted', permit: PERMIT });
    s.step();
    const controls = ['max_order_qty', 'max_order_value'] as const;
    const permit = { ...PERMIT, override_id: 'o-2', worst_price: 99, controls };
    s.supervise({ kind: 'risk.override_granted', permit });
    s.step();
    s.supervise({ kind: 'risk.override_ended', override_id: 'o-1' });
    s.supervise({ kind: 'risk.override_ended', override_id: 'o-2' });
    s.step(90);
    const reasons = s.ends().map(([, , reason]) => reason);
    expect(reasons).toEqual(['max_order_value', 'max_order_value', 'max_order_qty']);
    await s.expectSameOnResume();
  });
});

it('an order that used a permit cannot use another one at its fill', async () => {
  const wish = { quantity: 30, y: true } as const;
  const s = newSession({ max_order_qty: 20, max_order_value: 2900 }, [[wish]]);
  const permits = { a: ['max_order_qty'], b: ['max_order_qty', 'max_order_value'] } as const;
  for (const [override_id, controls] of Object.entries(permits)) {
    const permit = { ...PERMIT, symbol: 'Y', override_id, controls };
    s.supervise({ kind: 'risk.override_granted', permit });
  }
  // The value of the order is unknown before the first bar of Y.
  s.step(100, ['X']);
  s.step();
  expect(s.ends()).toEqual([[1, 'denied', 'max_order_value']]);
  expect(s.session.supervised).toMatchObject({ open: ['b'], used: ['a'] });
  await s.expectSameOnResume();
});

it('a permit with a price applies to the order until it is filled, at no worse price', async () => {
  const near = { price_collar_period: { bps: 100, seconds: 3600 } };
  const s = newSession({}, [[{ quantity: 1 }], [], [{ quantity: 1 }], [{ quantity: 1 }]], near);
  s.step(100);
  s.step(100);
  const controls = ['price_collar_period'] as const;
  for (const override_id of ['a', 'b']) {
    s.supervise({
      kind: 'risk.override_granted',
      permit: { ...PERMIT, override_id, controls, worst_price: 110 },
    });
  }
  s.step(105);
  s.step(106);
  s.step(111);
  expect(s.ends()).toEqual([[3, 'canceled', 'price_collar_bps']]);
  expect(s.session.state().positions).toEqual({ X: 2 });
  await s.expectSameOnResume();
});

describe('a lifted latch', () => {
  it('lets the session continue and resets the count of executions', async () => {
    const optionalLimits = { repeated_execution: { count: 2, seconds: 3600 } };
    const one = [{ quantity: 1 }];
    const s = newSession({}, [one, one, one, one, one, one, one], optionalLimits);
    for (let i = 0; i < 4; i += 1) s.step();
    expect(s.session.supervised).toMatchObject({ latches: 1, lifted: 0 });
    s.supervise({ kind: 'control.latch_lifted', latches: 1 });
    for (let i = 0; i < 3; i += 1) s.step();
    expect(s.ends().map(([order]) => order)).toEqual([3, 4, 7]);
    expect(s.session.supervised).toMatchObject({ latches: 2, lifted: 1 });
    await s.expectSameOnResume();
  });
});

it('decideSupervision returns the inputs that a session has not received yet', () => {
  const state = { thresholds: {}, open: ['a', 'b'], used: ['c'], latches: 2, lifted: 1, epoch: 1 };
  const thresholds = { max_order_value: { value: 1 } };
  const permits = ['a', 'b', 'c', 'd'].map((override_id) => ({ ...PERMIT, override_id }));
  permits[1] = { ...permits[1]!, expires_at: START - 1 };
  const late = permits.map((permit) => ({ ...permit, expires_at: permit.expires_at + 1 }));
  const inputs = decideSupervision(state, { thresholds, permits: late, latches_lifted: 1 }, START);
  expect(inputs.map(({ kind }) => kind)).toEqual([
    'risk.thresholds_set',
    'risk.override_ended',
    'risk.override_granted',
  ]);
  const all = { ...state, thresholds, open: ['a', 'd'] };
  const lifted = decideSupervision(all, { thresholds, permits: late, latches_lifted: 2 }, START);
  expect(lifted).toEqual([{ kind: 'control.latch_lifted', latches: 2 }]);
  const adopted = { thresholds, permits: late, latches_lifted: 2, database_epoch: 3 };
  expect(decideSupervision(all, adopted, START)[0]).toEqual({
    kind: 'control.epoch_set',
    epoch: 3,
  });
  const known = { ...all, epoch: 3 };
  expect(decideSupervision(known, adopted, START).map(({ kind }) => kind)).toEqual([
    'control.latch_lifted',
  ]);
});

/** Creates a session with these orders at each step, in X or Y at 100 each. */
function newSession(
  risk: Partial<RiskLimits>,
  wishes: readonly (readonly Wish[])[],
  optionalLimits?: OptionalLimits,
) {
  const strategy = defineStrategy({
    name: 'scripted',
    description: 'places the orders of the test',
    params: {},
    create({ instruments: [x, y], broker }) {
      let step = 0;
      return {
        onBar() {
          for (const { sell, y: isY, ...wish } of wishes[step] ?? []) {
            broker.order({ ...wish, side: sell ? 'sell' : 'buy', instrument: (isY ? y : x)! });
          }
          step += 1;
        },
      };
    },
  });
  const setup = {
    symbols: ['X', 'Y'],
    strategy,
    params: {},
    config: {
      ...ENGINE_DEFAULTS,
      account: MARGIN,
      risk: { ...NO_RISK_LIMITS, ...risk },
      optionalLimits,
    },
    timeoutMs: Infinity,
  };
  const session = new TradingSession(setup);
  const inputs: SessionInput[] = [];
  let time = START;
  return {
    session,
    supervise(input: SupervisionInput) {
      const { kind, payload } = inputEvent(input, START);
      inputs.push(parseInput(kind as SupervisionInput['kind'], JSON.stringify(payload)));
      return session.supervise(input);
    },
    step(price = 100, symbols = ['X', 'Y']) {
      const bar = { open: price, high: price, low: price, close: price, volume: 1000 };
      const bars = Object.fromEntries(symbols.map((symbol) => [symbol, bar]));
      const step: Step = { time, bars };
      time += MINUTE;
      inputs.push({ kind: 'data.bars', step });
      return session.push(step);
    },
    ends: () =>
      session.events().flatMap((event) => {
        const isEnd = 'reason' in event && event.kind !== 'order.pending_cancel';
        return isEnd ? [[event.order, event.kind.slice('order.'.length), event.reason]] : [];
      }),
    /** Asserts that the recorded inputs lead to the same session. */
    async expectSameOnResume() {
      const again = await TradingSession.resume(setup, inputs);
      expect(stateHash(again.state())).toBe(stateHash(session.state()));
      expect(again.events()).toEqual(session.events());
      expect(again.supervised).toEqual(session.supervised);
    },
  };
}
