import { describe, expect, it } from 'vitest';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig, RiskLimits } from '../../src/engine/config.ts';
import type { Order } from '../../src/engine/orders/order.ts';
import { backtest, bars, DAY, flat, MARGIN, play, START } from './market.ts';
import type { Candle, Played, Scene } from './market.ts';

const at = (price: number): Candle => [price, price, price, price];
const limits = (some: Partial<RiskLimits>): Partial<EngineConfig> => ({
  risk: { ...NO_RISK_LIMITS, ...some },
});
/** Equity is 100,000, the price 100. */
const STILL = bars(flat(4));

describe('risk limits:', () => {
  it.each<[keyof RiskLimits, number, (scene: Scene) => Readonly<Order>]>([
    ['max_order_value', 999, ({ buy }) => buy(10)],
    ['max_order_qty', 9, ({ buy }) => buy(10)],
    ['price_collar_bps', 100, ({ buy }) => buy(1, { type: 'limit', limit: 98.9 })],
    ['price_collar_bps', 100, ({ buy }) => buy(1, { type: 'stop', stop: 101.1 })],
    ['price_collar_bps', 100, ({ buy }) => buy(1, { type: 'stop_limit', stop: 105, limit: 101 })],
    ['price_collar_bps', 100, ({ buy }) => buy(1, { type: 'stop_limit', stop: 101, limit: 105 })],
    ['price_collar_bps', 100, ({ sell }) => sell(1, { type: 'trailing_stop', trail: 1.1 })],
    ['max_position_pct', 0.1, ({ buy }) => buy(101)],
    ['max_position_pct', 0.1, ({ sell }) => sell(101)],
    ['max_position_pct', 0.1, ({ broker, instruments: [x] }) => broker.target(x!, 0.11)],
    ['max_messages_per_second', 0, ({ buy }) => buy(1)],
  ])('%s %d denies an order above it before submission', (limit, value, act) => {
    let order: Readonly<Order> | undefined;
    const run = play({
      bars: STILL,
      config: { account: MARGIN, ...limits({ [limit]: value }) },
      script: {
        0: (scene) => {
          order = act(scene);
          expect(scene.broker.working()).toEqual([]);
        },
      },
    });
    expect(order).toMatchObject({ status: 'denied', reason: limit });
    expect(run.fills).toEqual([]);
    expect(run.result.orders).toMatchObject({ submitted: 0, denied: { [limit]: 1 }, rejected: {} });
    expect(run.events).toMatchObject([{ kind: 'order.denied', reason: limit, order: 1 }]);
  });

  it.each<[keyof RiskLimits, number, (scene: Scene) => unknown]>([
    ['max_order_value', 1000, ({ buy }) => buy(10)],
    ['max_order_value', 330, ({ buy }) => buy(3.3)],
    ['max_order_qty', 10, ({ buy }) => buy(10)],
    ['price_collar_bps', 110, ({ buy }) => buy(1, { type: 'limit', limit: 101.1 })],
    ['max_position_pct', 0.1, ({ buy }) => buy(100)],
    ['max_position_pct', 0.07, ({ broker, instruments: [x] }) => broker.target(x!, 0.07)],
    ['max_messages_per_second', 1, ({ buy }) => buy(1)],
    ['max_instruments', 1, ({ buy }) => buy(1)],
  ])('%s %d allows an order that is exactly at the limit', (limit, value, act) => {
    const { fills } = play({
      bars: STILL,
      config: limits({ [limit]: value }),
      script: { 0: act },
    });
    expect(fills.length).toBe(1);
  });

  it.each([
    ['buy', 105, 'filled'],
    ['buy', 105.1, 'canceled'],
    ['sell', 95, 'filled'],
    ['sell', 94.9, 'canceled'],
  ] as const)('a market order to %s that would be filled at %d is %s', (side, open, kind) => {
    const { events } = play({
      bars: bars([at(100), at(open)]),
      config: { account: MARGIN, ...limits({ price_collar_bps: 500 }) },
      script: { 0: (scene) => scene[side](1) },
    });
    expect(events.at(-1)!.kind).toBe(`order.${kind}`);
    if (kind === 'canceled') expect(events.at(-1)).toMatchObject({ reason: 'price_collar_bps' });
  });

  it('a stop order that the price has passed waits until it is within the collar again', () => {
    const { fills } = play({
      bars: bars([at(100), at(100), at(90), at(94)]),
      config: limits({ price_collar_bps: 200 }),
      script: { 0: ({ buy }) => buy(1), 1: ({ sell }) => sell(1, { type: 'stop', stop: 95 }) },
    });
    // The stop itself was too far from the price.
    expect(fills.length).toBe(1);
    const wider = play({
      bars: bars([at(100), at(100), at(80), at(91)]),
      config: limits({ price_collar_bps: 500 }),
      script: { 0: ({ buy }) => buy(1), 1: ({ sell }) => sell(1, { type: 'stop', stop: 95 }) },
    });
    const prices = wider.events.flatMap((event) =>
      event.kind === 'order.filled' ? [event.price] : [],
    );
    expect(prices).toEqual([100, 91]);
  });

  it.each([
    [1, 'max_order_value'],
    [95, undefined],
  ])('an order is valued at the previous close after a single close of %d', (close, reason) => {
    const { events } = play({
      bars: bars([100, close, 100].map(at)),
      config: limits({ price_collar_bps: 500, max_order_value: 960 }),
      script: { 1: ({ buy }) => buy(10) },
    });
    expect(events[0]).toMatchObject(
      reason === undefined ? { kind: 'order.submitted' } : { kind: 'order.denied', reason },
    );
  });

  it('a trailing stop is checked at its current price', () => {
    const { events } = play({
      bars: bars([at(100), at(100), at(120), at(100), at(113)]),
      config: limits({ price_collar_bps: 1000 }),
      script: {
        0: ({ buy }) => buy(1),
        1: ({ sell }) => sell(1, { type: 'trailing_stop', trail: 5 }),
      },
    });
    // Its stop is then 115, and 100 is outside the collar around it.
    const prices = events.flatMap((event) => (event.kind === 'order.filled' ? [event.price] : []));
    expect(prices).toEqual([100, 113]);
  });

  it.each([
    [[100, 120], 120, false],
    [[100, 120], 100, true],
    [[100, 120, 101], 101, true],
    [[100, 120, 121], 121, true],
    [[100, 120, 140], 140, true],
    [[100, 120, 80], 80, false],
  ] as const)(
    'after closes of %j, a limit price of %d is within the collar: %s',
    (closes, limit, isTaken) => {
      const { events } = play({
        bars: bars([...closes, 100].map(at)),
        config: limits({ price_collar_bps: 500 }),
        script: { [closes.length - 1]: ({ buy }) => buy(1, { type: 'limit', limit }) },
      });
      expect(events[0]!.kind).toBe(isTaken ? 'order.submitted' : 'order.denied');
    },
  );

  it('a target equal to the position limit is never denied because of rounding', () => {
    for (let price = 11; price < 60; price += 0.7) {
      for (const weight of [0.07, 0.29, 1 / 3]) {
        const { fills } = play({
          bars: bars(flat(3, price)),
          config: { cash: 12_345.67, ...limits({ max_position_pct: weight }) },
          script: { 0: ({ broker, instruments: [x] }) => broker.target(x!, weight) },
        });
        expect(fills.length).toBe(1);
      }
    }
  });
});

describe('a target when it is filled', () => {
  const target =
    (weight: number) =>
    ({ broker, instruments: [x] }: Scene) =>
      broker.target(x!, weight);

  it('applies max_order_qty to the size at the fill', () => {
    const { ends, result } = play({
      // 500 units at 100, and 1,000 at the open of 50.
      bars: bars([at(100), at(50), at(50)]),
      config: limits({ max_order_qty: 600 }),
      script: { 0: target(0.5) },
    });
    expect(ends).toEqual([[1, 1, 'denied', 'max_order_qty']]);
    expect(result.orders).toMatchObject({ submitted: 1, denied: { max_order_qty: 1 } });
  });

  it('applies max_daily_loss_pct from the close of the day before', () => {
    const risk = limits({ max_daily_loss_pct: 0.03 });
    const run = (open: number): Played =>
      play({
        // Half in X; X falls by 4 % on the second day, then opens lower on the third.
        bars: { X: bars([at(100), at(100), at(96), at(open)]), Y: bars(flat(4)) },
        config: risk,
        script: {
          0: target(0.5),
          2: ({ broker, instruments: [, y] }) => broker.target(y!, 0.1),
        },
      });
    // The loss of 2 % on the previous day does not count on this one;
    expect(run(92).ends).toEqual([]);
    expect(run(92).fills.length).toBe(2);
    // the loss of more than 3 % of the 98,000 at its close does.
    expect(run(89).ends).toEqual([[3, 2, 'denied', 'max_daily_loss_pct']]);
  });
});

describe('losses', () => {
  // 1,000 units; equity follows the price.
  const fall = (...prices: number[]): Played['result']['orders']['denied'] =>
    play({
      bars: bars([at(100), ...prices.map(at)]),
      config: { account: MARGIN, ...limits({ max_drawdown_pct: 0.1, max_daily_loss_pct: 0.08 }) },
      script: {
        0: ({ buy }) => buy(1000),
        [prices.length]: ({ buy, sell, broker, instruments: [x] }) => {
          buy(1);
          // Orders that reduce the position are always allowed.
          expect(sell(10).status).toBe('working');
          expect(buy(1, { reduceOnly: true }).status).toBe('working');
          expect(broker.target(x!, 0).status).toBe('working');
          // Orders that reverse the position are not.
          sell(1001, { type: 'limit', limit: 200 });
        },
      },
    }).result.orders.denied;

  it('deny nothing below the limits', () => {
    expect(fall(100, 92.5)).toEqual({});
    expect(fall(100, 110, 103, 99.1)).toEqual({});
  });

  it('deny opening orders beyond the limit of a day', () => {
    expect(fall(100, 91.9)).toEqual({ max_daily_loss_pct: 2 });
  });

  it('deny opening orders beyond the limit from the peak', () => {
    expect(fall(100, 110, 104, 98.9)).toEqual({ max_drawdown_pct: 2 });
  });

  it('deny no orders on the day after the loss', () => {
    const hours = bars([at(100), at(100), at(91), at(91), at(91), at(91)], START, DAY / 4);
    const statuses: string[] = [];
    play({
      bars: hours,
      config: limits({ max_daily_loss_pct: 0.08 }),
      everyBar: ({ buy, step }) => {
        statuses.push(buy(step === 0 ? 1000 : 0.001).status);
      },
    });
    // The day begins with 100,000 and ends after four bars with 91,000, as the next one begins.
    expect(statuses).toEqual(['working', 'working', 'denied', 'denied', 'working', 'working']);
  });
});

describe('max_position_pct', () => {
  const config = { account: MARGIN, ...limits({ max_position_pct: 0.1 }) };

  it('counts the position', () => {
    const { ends } = play({
      bars: STILL,
      config,
      script: { 0: ({ buy }) => buy(60), 1: ({ buy }) => [buy(41), buy(40)] },
    });
    expect(ends.map(([, id, , reason]) => [id, reason])).toEqual([[2, 'max_position_pct']]);
  });

  it('counts working orders of the same side', () => {
    const { ends } = play({
      bars: STILL,
      config,
      script: {
        0: ({ buy }) => buy(60, { type: 'limit', limit: 90 }),
        1: ({ buy, sell }) => [buy(41), sell(100)],
      },
    });
    expect(ends.map(([, id, , reason]) => [id, reason])).toEqual([[2, 'max_position_pct']]);
  });

  it('counts one-cancels-other orders once, and ignores orders that only reduce', () => {
    const { ends } = play({
      bars: STILL,
      config,
      script: {
        0: ({ buy }) => {
          buy(50, { reduceOnly: true, type: 'limit', limit: 90 });
          buy(100, { type: 'limit', limit: 90, ocoGroup: 1 });
          buy(100, { type: 'stop', stop: 110, ocoGroup: 1 });
        },
      },
    });
    expect(ends).toEqual([]);
  });
});

describe('max_instruments', () => {
  const three = { A: STILL, B: STILL, C: STILL };
  const config = { account: MARGIN, ...limits({ max_instruments: 2 }) };

  it('counts positions and working entries', () => {
    const { ends } = play({
      bars: three,
      config,
      script: {
        0: ({ buy }) => buy(1),
        1: ({ buy, sell, instruments: [, b, c] }) => {
          buy(1, { instrument: c!, type: 'limit', limit: 90 });
          sell(1, { instrument: b! });
          buy(1);
        },
      },
    });
    expect(ends).toEqual([[1, 3, 'denied', 'max_instruments']]);
  });

  it('does not count closing orders or canceled entries', () => {
    const { fills, ends } = play({
      bars: three,
      config: { account: MARGIN, units: 'whole', ...limits({ max_instruments: 1 }) },
      script: {
        0: ({ broker, instruments: [a, b, c] }) => {
          broker.target(a!, 0);
          // Less than one unit.
          broker.target(b!, 0.0001);
          broker.target(c!, 0.1);
        },
        2: ({ broker, buy, instruments: [a, , c] }) => {
          broker.target(a!, 0);
          buy(1, { instrument: c! });
        },
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([3, 5]);
    expect(ends.map(([, id, , reason]) => [id, reason])).toEqual([
      [1, 'quantity_rounds_to_zero'],
      [2, 'quantity_rounds_to_zero'],
      [4, 'quantity_rounds_to_zero'],
    ]);
  });

  it('allows a target to replace an instrument that is sold in the same step', () => {
    const { fills, ends } = play({
      bars: three,
      config,
      script: {
        0: ({ broker, instruments: [a, b] }) => [broker.target(a!, 0.4), broker.target(b!, 0.4)],
        1: ({ broker, instruments: [a, , c] }) => [broker.target(a!, 0), broker.target(c!, 0.4)],
        2: ({ broker, instruments: [a] }) => broker.target(a!, 0.1),
      },
    });
    expect(fills.map(([, id]) => id)).toEqual([1, 2, 3, 4]);
    expect(ends).toEqual([[3, 5, 'denied', 'max_instruments']]);
  });

  it('allows a rotation among the maximum number of instruments', () => {
    const rising = (drift: number) =>
      bars(Array.from({ length: 60 }, (_, i) => at(100 + Math.sin(i * drift) * 9)));
    const { result } = backtest(
      'momentum_rotation',
      { lookback: 3, hold: 4, top: 2 },
      { A: rising(0.3), B: rising(0.41), C: rising(0.53), D: rising(0.67) },
      limits({ max_instruments: 2 }),
    );
    expect(result.orders.denied).toEqual({});
    expect(new Set(result.trades.map(({ symbol }) => symbol)).size).toBe(4);
  });
});

describe('max_messages_per_second', () => {
  it('counts orders and cancels per bar, and never denies a cancel', () => {
    const { ends } = play({
      bars: STILL,
      config: limits({ max_messages_per_second: 3 }),
      everyBar: ({ buy, broker, step }) => {
        if (step > 1) return;
        const first = buy(1, { type: 'limit', limit: 90 });
        broker.cancel(first);
        broker.cancel(first);
        const second = buy(1, { type: 'limit', limit: 90 });
        buy(1);
        broker.cancel(second);
      },
    });
    expect(ends.map(([step, , status, reason]) => [step, status, reason])).toEqual(
      [0, 1].flatMap((step) => [
        [step, 'canceled', 'canceled_by_strategy'],
        [step, 'denied', 'max_messages_per_second'],
        [step, 'canceled', 'canceled_by_strategy'],
      ]),
    );
  });

  it('counts a target that replaces another as two', () => {
    const statuses: string[] = [];
    play({
      bars: bars(flat(1)),
      config: limits({ max_messages_per_second: 3 }),
      everyBar: ({ broker, instruments: [x] }) => {
        for (const weight of [0.1, 0.2, 0.3]) statuses.push(broker.target(x!, weight).status);
      },
    });
    expect(statuses).toEqual(['working', 'working', 'denied']);
  });

  it('uses seconds of bar time', () => {
    const statuses: string[] = [];
    play({
      bars: bars(flat(4), START, 500),
      config: limits({ max_messages_per_second: 1 }),
      everyBar: ({ buy }) => statuses.push(buy(1).status),
    });
    expect(statuses).toEqual(['working', 'denied', 'working', 'denied']);
  });
});

describe('an order from before the first bar of its instrument', () => {
  const late = bars([at(50), at(50)], START + DAY);

  it.each<[keyof RiskLimits, number, (scene: Scene) => unknown]>([
    ['max_order_value', 999, ({ buy, instruments: [, b] }) => buy(20, { instrument: b! })],
    ['max_position_pct', 0.009, ({ buy, instruments: [, b] }) => buy(20, { instrument: b! })],
    [
      'price_collar_bps',
      500,
      ({ buy, instruments: [, b] }) => buy(1, { instrument: b!, type: 'limit', limit: 53 }),
    ],
    ['max_order_value', 999, ({ broker, instruments: [, b] }) => broker.target(b!, 0.01)],
  ])('is checked against %s at its fill', (limit, value, act) => {
    const run = play({
      bars: { A: STILL, late },
      config: limits({ [limit]: value }),
      script: { 0: act },
    });
    expect(run.fills).toEqual([]);
    expect(run.ends).toEqual([[1, 1, 'denied', limit]]);
  });
});
