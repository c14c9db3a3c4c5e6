import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import type { Instrument } from '../../src/engine/instrument.ts';
import { lateError, StrategyError } from '../../src/engine/strategy-error.ts';
import { mergeTimes } from '../../src/engine/steps.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import type { Broker, StrategyRun } from '../../src/engine/strategy.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { allocateBars, BAR_COLUMNS } from '../../src/market/bars.ts';
import { backtest, bars, DAY, ENGINE_DEFAULTS, flat, MARGIN, play, START } from './market.ts';
import type { Candle, Play } from './market.ts';
import { isAtLength } from '../length.ts';

const at = (price: number): Candle => [price, price, price, price];
const [STILL] = flat(1) as [Candle];

describe('steps', () => {
  it('are the distinct times of all instruments, in order', () => {
    const even = bars(flat(3), START, 2 * DAY);
    const odd = bars(flat(2), START + DAY, 3 * DAY);
    expect([...mergeTimes([even, odd])].map((time) => (time - START) / DAY)).toEqual([0, 1, 2, 4]);
    expect(mergeTimes([even])).toBe(even.time);
  });

  it('advance by the requested number, and stop at the last', () => {
    const engine = new Engine({
      instruments: [{ symbol: 'X', bars: bars(flat(5)) }],
      strategy: BUILT_IN_STRATEGIES.get('buy_and_hold')!,
      params: {},
      config: ENGINE_DEFAULTS,
    });
    expect(engine.steps).toBe(5);
    expect(engine.advance(0)).toBe(true);
    expect(engine.advance(2)).toBe(true);
    expect(engine.done).toBe(2);
    expect(engine.result().equity.length).toBe(2);
    expect(engine.advance(3)).toBe(false);
    expect(engine.advance(3)).toBe(false);
    expect(engine.done).toBe(5);
  });
});

describe('appended bars', () => {
  const engineOf = (create: StrategyRun['onBar'], broker?: (broker: Broker) => void): Engine =>
    new Engine({
      instruments: ['X', 'Y'].map((symbol) => ({ symbol, bars: allocateBars(0) })),
      strategy: defineStrategy({
        name: 'later',
        description: '',
        params: {},
        create: (context) => {
          broker?.(context.broker);
          return { onBar: create };
        },
      }),
      params: {},
      config: ENGINE_DEFAULTS,
    });
  const candle = { open: 1, high: 1, low: 1, close: 1, volume: 1 };

  it('are rejected without an effect unless they are later and of instruments of the run', () => {
    const engine = engineOf(() => {});
    engine.append({ time: 0, bars: { Y: candle } });
    for (const [step, fault] of [
      [{ time: 0, bars: { X: candle } }, 'bars of time 0 must be later than those of time 0'],
      [{ time: -1, bars: { X: candle } }, 'bars of time -1 must be later than those of time 0'],
      [{ time: NaN, bars: { X: candle } }, 'bars of time NaN'],
      [{ time: 1, bars: { X: candle, Z: candle } }, 'this run has no instrument Z'],
      [{ time: 1, bars: {} }, 'the step of time 1 has no bars'],
    ] as const) {
      expect(() => engine.append(step)).toThrow(new RegExp(fault));
    }
    expect(engine.steps).toBe(1);
    // X would have a bar if the rejected bars had been kept.
    engine.advance(1);
    engine.append({ time: 2, bars: { X: candle } });
    expect([engine.advance(1), engine.steps, engine.done]).toEqual([false, 2, 2]);
  });

  it('are required before the strategy is created', () => {
    let created = 0;
    const engine = engineOf(
      () => {},
      () => (created += 1),
    );
    expect([engine.advance(1), created]).toEqual([false, 0]);
    engine.append({ time: 0, bars: { X: candle } });
    expect([engine.advance(1), created]).toEqual([false, 1]);
  });

  it('are not visible as bars of time 0 before they arrive', () => {
    const fresh: boolean[][] = [];
    const markets = { X: bars([STILL, STILL], -DAY), Y: bars([STILL], -DAY) };
    const setup: Play = {
      bars: markets,
      everyBar: ({ instruments }) => fresh.push(instruments.map((one) => one.fresh)),
    };
    play({ ...setup, slice: 'as they come' });
    expect(fresh).toEqual([
      [true, true],
      [true, false],
    ]);
  });
});

describe('a halt', () => {
  it('cancels working orders, at the time of the last bar', () => {
    let broker: Broker | undefined;
    const [X] = [bars(flat(3))];
    const engine = new Engine({
      instruments: [{ symbol: 'X', bars: X }],
      strategy: defineStrategy({
        name: 'resting',
        description: '',
        params: {},
        create: ({ instruments, broker: hands }) => {
          broker = hands;
          const [instrument] = instruments as [Instrument];
          const limit = (price: number) =>
            hands.order({ instrument, side: 'buy', quantity: 1, type: 'limit', limit: price });
          limit(1);
          return { onBar: () => void (instrument.count === 2 && limit(2)) };
        },
      }),
      params: {},
      config: ENGINE_DEFAULTS,
    });
    engine.advance(2);
    expect(engine.run.working.map(({ id, limit }) => [id, limit])).toEqual([
      [1, 1],
      [2, 2],
    ]);
    engine.halt();
    expect(engine.run.working).toEqual([]);
    const time = new Date(START + DAY).toISOString();
    expect([...engine.result().journal.events(2)]).toEqual([
      { seq: 3, time, kind: 'order.canceled', order: 1, symbol: 'X', reason: 'halted' },
      { seq: 4, time, kind: 'order.canceled', order: 2, symbol: 'X', reason: 'halted' },
    ]);
    expect(broker!.working()).toEqual([]);
  });
});

describe('the data that a strategy sees', () => {
  it('includes the newest bar and all earlier ones', () => {
    const seen: unknown[] = [];
    play({
      bars: bars([
        [1, 3, 0.5, 2, 10],
        [2, 4, 1, 3, 20],
      ]),
      onCreate: ({ instruments: [x] }) => {
        seen.push([x!.count, x!.fresh, x!.time, x!.open, x!.high, x!.low, x!.close, x!.volume]);
      },
      everyBar: ({ instruments: [x] }) => {
        seen.push([x!.count, x!.fresh, x!.time, x!.open, x!.high, x!.low, x!.close, x!.volume]);
        seen.push([x!.ago('close', 0), x!.ago('close', 1), x!.ago('close', 2)]);
      },
    });
    expect(seen).toEqual([
      [0, false, NaN, NaN, NaN, NaN, NaN, NaN],
      [1, true, START, 1, 3, 0.5, 2, 10],
      [2, NaN, NaN],
      [2, true, START + DAY, 2, 4, 1, 3, 20],
      [3, 2, NaN],
    ]);
  });

  it('never includes a later bar', () => {
    play({
      bars: bars(flat(3)),
      everyBar: ({ instruments: [x], step }) => {
        for (const bars_ of [-1, -0.5, 0.5, NaN, -Infinity, Infinity]) {
          expect(() => x!.ago('close', bars_)).toThrow(RangeError);
        }
        for (const column of BAR_COLUMNS) expect(x!.ago(column, step + 1)).toBeNaN();
        // The columns cannot be reached from an instrument.
        expect(Reflect.ownKeys(x!)).toEqual(['symbol', 'index']);
      },
    });
    expect.hasAssertions();
  });

  it('includes the last bar of an instrument without a bar in this step', () => {
    const seen: [boolean, number, number][] = [];
    play({
      bars: { A: bars(flat(3)), B: bars([at(7), at(8)], START, 2 * DAY) },
      everyBar: ({ instruments: [, b] }) => seen.push([b!.fresh, b!.count, b!.close]),
    });
    expect(seen).toEqual([
      [true, 1, 7],
      [false, 1, 7],
      [true, 2, 8],
    ]);
  });

  it('values the account at the close, in onFill and in onBar', () => {
    const seen: unknown[] = [];
    const look = ({
      step,
      broker,
      instruments: [x],
    }: {
      step: number;
      broker: Broker;
      instruments: readonly Instrument[];
    }): void => {
      seen.push([step, broker.cash, broker.equity, broker.position(x!), broker.entryPrice(x!)]);
    };
    play({
      bars: bars([at(100), [100, 120, 90, 110], [120, 130, 110, 130]]),
      config: { cash: 1000 },
      script: { 0: ({ buy }) => buy(5), 1: ({ sell }) => sell(5) },
      everyBar: look,
      onFill: look,
    });
    expect(seen).toEqual([
      [0, 1000, 1000, 0, NaN],
      [1, 500, 1050, 5, 100],
      [1, 500, 1050, 5, 100],
      [2, 1100, 1100, 0, NaN],
      [2, 1100, 1100, 0, NaN],
    ]);
  });

  it('lists working orders, oldest first', () => {
    const seen: unknown[] = [];
    const look: Play['everyBar'] = ({ step, broker, instruments: [, b] }) => {
      const ids = (instrument?: Instrument): number[] =>
        broker.working(instrument).map(({ id }) => id);
      seen.push([step, ids(), ids(b)]);
    };
    play({
      bars: { A: bars([STILL, STILL, [100, 110, 90, 100]]), B: bars(flat(3)) },
      script: {
        0: ({ buy, instruments: [, b], broker }) => {
          buy(1, { stopLoss: 95, takeProfit: 105 });
          buy(1, { type: 'limit', limit: 90, instrument: b! });
          broker.cancel(buy(1));
        },
      },
      everyBar: look,
      onFill: look,
    });
    expect(seen).toEqual([
      [0, [1, 2], [2]],
      [1, [2, 4, 5], [2]],
      [1, [2, 4, 5], [2]],
      [2, [2], [2]],
      [2, [2], [2]],
    ]);
  });
});

describe('an action of a strategy', () => {
  it('in onFill takes effect from the next bar on', () => {
    const { fills } = play({
      bars: bars([STILL, [100, 120, 80, 100], [101, 120, 80, 100], STILL]),
      script: { 0: ({ buy }) => buy(2) },
      onFill: ({ sell }, { quantity }) => {
        if (quantity > 0) sell(2, { type: 'limit', limit: 100.5 });
      },
    });
    expect(fills).toEqual([
      [1, 1, 2, 100],
      [2, 2, -2, 101],
    ]);
  });

  it('in onFill can cancel the exits of the entry', () => {
    const { fills, ends } = play({
      bars: bars([STILL, STILL, [100, 120, 80, 100]]),
      script: { 0: ({ buy }) => buy(2, { stopLoss: 90, takeProfit: 110 }) },
      onFill: ({ broker }) => {
        for (const order of broker.working()) broker.cancel(order);
      },
    });
    expect(fills).toEqual([[1, 1, 2, 100]]);
    expect(ends.map(([, id, , reason]) => [id, reason])).toEqual([
      [2, 'canceled_by_strategy'],
      [3, 'canceled_by_strategy'],
    ]);
  });

  it('leads to one onFill per fill, in order, before onBar', () => {
    const told: unknown[] = [];
    play({
      bars: { A: bars(flat(3)), B: bars(flat(3)) },
      config: { fees: { model: 'percent', rate: 0.01, min: 0 }, account: MARGIN },
      script: {
        0: ({ buy, sell, instruments: [, b] }) => {
          sell(2, { instrument: b! });
          buy(3);
        },
      },
      everyBar: ({ step }) => told.push(step),
      onFill: ({ step }, { order, instrument, quantity, price, fee }) => {
        told.push([step, order.id, order.status, instrument.symbol, quantity, price, fee]);
      },
    });
    expect(told).toEqual([
      0,
      [1, 1, 'filled', 'B', -2, 100, 2],
      [1, 2, 'filled', 'A', 3, 100, 3],
      1,
      2,
    ]);
  });

  it('in create takes effect from the first bar on', () => {
    const { fills } = play({ bars: bars(flat(2)), onCreate: ({ buy }) => buy(1) });
    expect(fills).toEqual([[0, 1, 1, 100]]);
  });

  it('is rejected for an instrument of another run', () => {
    let stranger: Instrument | undefined;
    play({ bars: bars(flat(1)), everyBar: ({ instruments: [x] }) => (stranger = x!) });
    play({
      bars: bars(flat(1)),
      everyBar: ({ broker }) => {
        expect(() => broker.target(stranger!, 1)).toThrow(RangeError);
        expect(() => broker.position(stranger!)).toThrow(RangeError);
        expect(() => broker.order({ instrument: stranger!, side: 'buy', quantity: 1 })).toThrow(
          RangeError,
        );
      },
    });
    expect.hasAssertions();
  });

  it.each([NaN, Infinity, -Infinity])('rejects a target of %d', (weight) => {
    expect(() =>
      play({
        bars: bars(flat(1)),
        everyBar: ({ broker, instruments: [x] }) => broker.target(x!, weight),
      }),
    ).toThrow('weight must be a finite number');
  });

  it.each([
    [{ quantity: 0 }, 'quantity must be above 0'],
    [{ quantity: -1 }, 'quantity must be above 0'],
    [{ quantity: NaN }, 'quantity must be above 0'],
    [{ quantity: Infinity }, 'quantity must be above 0'],
    [{ side: 'long' as 'buy' }, "side must be 'buy' or 'sell'"],
    [{ type: 'moc' as 'market' }, 'type must be one of'],
    [{ timeInForce: 'gtd' as 'gtc' }, 'timeInForce must be one of'],
    [{ type: 'limit' }, 'limit needs limit'],
    [{ type: 'limit', limit: 0 }, 'limit needs limit'],
    [{ type: 'limit', limit: NaN }, 'limit needs limit'],
    [{ type: 'stop' }, 'stop needs stop'],
    [{ type: 'stop_limit', stop: 1 }, 'stop_limit needs limit'],
    [{ limit: 90 }, 'a market order has no limit'],
    [{ stop: 90 }, 'a market order has no stop'],
    [{ type: 'limit', limit: 90, stop: 80 }, 'a limit order has no stop'],
    [{ type: 'stop', stop: 90, limit: 80 }, 'a stop order has no limit'],
    [{ type: 'trailing_stop', trail: 1, stop: 80 }, 'a trailing_stop order has no stop'],
    [{ type: 'trailing_stop' }, 'trail is required for trailing_stop'],
    [{ type: 'trailing_stop', trail: { percent: 0 } }, 'trail must be above 0'],
    [{ trail: 1 }, 'trail is required for trailing_stop'],
    [{ takeProfit: -1 }, 'takeProfit must be above 0'],
    [{ stopLoss: { percent: NaN } }, 'stopLoss must be above 0'],
    [{ postOnly: true }, 'postOnly applies only to limit orders'],
    [{ ocoGroup: -1 }, 'ocoGroup must be a whole number'],
    [{ ocoGroup: 0.5 }, 'ocoGroup must be a whole number'],
  ] as const)('cannot be an order of %o', (request, message) => {
    const order = () =>
      play({
        bars: bars(flat(1)),
        everyBar: (scene) => scene.order({ side: 'buy', quantity: 1, ...request }),
      });
    expect(order).toThrow(StrategyError);
    expect(order).toThrow(message);
  });
});

describe('a strategy that throws', () => {
  const boom = (): never => {
    throw new TypeError('boom');
  };
  const failing = (run: () => StrategyRun): StrategyError => {
    const engine = (): Engine =>
      new Engine({
        instruments: [{ symbol: 'X', bars: bars(flat(5)) }],
        strategy: defineStrategy({ name: 'failing', description: '', params: {}, create: run }),
        params: {},
        config: ENGINE_DEFAULTS,
      });
    try {
      engine().advance(10);
    } catch (error) {
      expect(error).toBeInstanceOf(StrategyError);
      return error as StrategyError;
    }
    throw new Error('it did not throw');
  };

  it('in create fails at the first bar', () => {
    const error = failing(boom);
    expect([error.step, error.time, error.message]).toEqual([0, START, 'boom']);
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  it('in onBar fails at that bar', () => {
    let calls = 0;
    const error = failing(() => ({ onBar: () => (calls++ === 3 ? boom() : undefined) }));
    expect([error.step, error.time, error.message]).toEqual([3, START + 3 * DAY, 'boom']);
  });

  it('in onFill fails at the bar of the fill', () => {
    const setup: Play = { bars: bars(flat(5)), script: { 1: ({ buy }) => buy(1) }, onFill: boom };
    expect(() => play(setup)).toThrow(StrategyError);
    expect(() => play(setup)).toThrow(expect.objectContaining({ step: 2, time: START + 2 * DAY }));
  });

  it('after its turn is reported with its name, if it is known', () => {
    const late = (more: { strategy?: string; done?: number }): string =>
      lateError('boom', more).message;
    expect(late({ strategy: 'failing', done: 3 })).toBe(
      'strategy failing threw outside of create, onBar and onFill, after 3 bars: boom',
    );
    expect(late({})).toBe('the strategy threw outside of create, onBar and onFill: boom');
  });

  it('must not be async', () => {
    const error = failing(() => ({ onBar: async () => {} }));
    expect([error.step, error.message]).toEqual([
      0,
      'onBar must not be async: a bar is over when it returns',
    ]);
  });

  it('may throw a value that is not an Error', () => {
    const error = failing(() => {
      throw 'a string'; // oxlint-disable-line no-throw-literal, typescript/only-throw-error
    });
    expect(error.message).toBe('a string');
  });
});

describe('a strategy that awaits a promise', () => {
  it('cannot place orders when it resumes some bars later', async () => {
    let broker: Broker | undefined;
    let instrument: Instrument | undefined;
    let order: ReturnType<Broker['order']> | undefined;
    play({
      bars: bars(flat(3)),
      everyBar: (scene) => {
        broker = scene.broker;
        instrument = scene.instruments[0]!;
        order ??= scene.buy(1, { type: 'limit', limit: 50 });
      },
    });
    await Promise.resolve();
    expect(() => broker!.target(instrument!, 1)).toThrow('not after an await');
    expect(() => broker!.order({ instrument: instrument!, side: 'buy', quantity: 1 })).toThrow(
      'not after an await',
    );
    expect(() => broker!.cancel(order!)).toThrow('not after an await');
    expect(order!.status).toBe('working');
  });
});

describe('the journal', () => {
  it('records the request and the outcome of every order', () => {
    const { events, result } = play({
      bars: bars([STILL, [100, 104, 96, 100], [100, 108, 99, 100]]),
      config: {
        account: MARGIN,
        fees: { model: 'per_share', rate: 0.01, min: 0 },
        slippage: { model: 'basis_points', bps: 10 },
      },
      script: {
        0: ({ buy, sell, broker, instruments: [x] }) => {
          buy(4, { takeProfit: { percent: 0.07 }, stopLoss: 91 });
          sell(1, { type: 'limit', limit: 120, timeInForce: 'day', postOnly: true, ocoGroup: 7 });
          sell(1, { type: 'stop_limit', stop: 97, limit: 99, reduceOnly: true });
          sell(1, { type: 'trailing_stop', trail: { percent: 0.2 } });
          sell(1, { type: 'trailing_stop', trail: 25, timeInForce: 'fok' });
          broker.target(x!, -1.5);
        },
      },
    });
    const day = (n: number): string => new Date(START + n * DAY).toISOString();
    const asked = (order: number, rest: object): object => ({
      kind: 'order.submitted',
      time: day(0),
      symbol: 'X',
      type: 'market',
      time_in_force: 'gtc',
      seq: order,
      order,
      ...rest,
    });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
    expect(events.length).toBe(result.journal.count);
    expect(events.slice(0, 6)).toEqual([
      asked(1, { side: 'buy', quantity: 4, take_profit: { percent: 0.07 }, stop_loss: 91 }),
      asked(2, {
        side: 'sell',
        type: 'limit',
        quantity: 1,
        limit: 120,
        time_in_force: 'day',
        post_only: true,
        oco_group: 7,
      }),
      asked(3, {
        side: 'sell',
        type: 'stop_limit',
        quantity: 1,
        stop: 97,
        limit: 99,
        reduce_only: true,
      }),
      asked(4, { side: 'sell', type: 'trailing_stop', quantity: 1, trail: { percent: 0.2 } }),
      asked(5, {
        side: 'sell',
        type: 'trailing_stop',
        quantity: 1,
        trail: 25,
        time_in_force: 'fok',
      }),
      asked(6, { side: 'sell', weight: -1.5 }),
    ]);
    expect(events[6]).toEqual({
      seq: 7,
      kind: 'order.filled',
      time: day(1),
      order: 1,
      symbol: 'X',
      side: 'buy',
      quantity: 4,
      price: 100.1,
      reference: 100,
      fee: 0.04,
      slippage: expect.closeTo(0.4, 9),
      position: 4,
      cash: expect.closeTo(100_000 - 400.4 - 0.04, 9),
    });
    expect(events[7]).toMatchObject({ order: 7, type: 'stop', stop: 91, oco_group: -1, parent: 1 });
    expect(events[8]).toMatchObject({ order: 8, type: 'limit', limit: 100.1 * 1.07, parent: 1 });
    expect(JSON.parse(JSON.stringify(events))).toEqual(events);
  });

  it.runIf(isAtLength)('holds more than one chunk of rows', () => {
    const { events } = play({
      bars: bars(flat(1500)),
      everyBar: ({ buy, step }) => buy(step + 1, { type: 'limit', limit: 1 }),
    });
    expect(events.length).toBe(1500);
    expect(events.at(-1)).toMatchObject({ seq: 1500, order: 1500, quantity: 1500 });
    expect(events[1024]).toMatchObject({ seq: 1025, order: 1025, quantity: 1025 });
  });
});

describe('buy_and_hold', () => {
  it('buys equal shares of each instrument at its first bar, and holds them', () => {
    const { fills, result } = backtest(
      'buy_and_hold',
      {},
      { A: bars([at(10), at(10), at(20), at(20)]), B: bars([at(5), at(5)], START + 2 * DAY) },
    );
    // Half of 100,000 at 10; then half of 50,000 + 5,000 × 20 at 5, with only 50,000 in cash.
    expect(fills).toEqual([
      [1, 1, 5000, 10],
      [3, 2, 10_000, 5],
    ]);
    expect(result.trades).toEqual([]);
    expect(result.openTrades.length).toBe(2);
  });
});

describe('sma_crossover', () => {
  it('keeps its position if the averages touch without crossing', () => {
    // Both averages are 12 for one bar and then rise; whole units leave some cash.
    const { fills, result } = backtest(
      'sma_crossover',
      { fast: 1, slow: 2 },
      { X: bars([10, 10, 11, 12, 12, 12.5, 13, 6, 7, 7].map(at)) },
      { units: 'whole', cash: 115 },
    );
    expect(fills).toEqual([
      [3, 1, 9, 12],
      [8, 2, -9, 7],
      [9, 3, 10, 7],
    ]);
    expect(result.orders.submitted).toBe(3);
  });

  it('ignores a downward crossing without a position', () => {
    const { result } = backtest(
      'sma_crossover',
      { fast: 1, slow: 2 },
      { X: bars([10, 11, 12, 9, 8, 7].map(at)) },
    );
    expect(result.orders.submitted).toBe(0);
  });
});
