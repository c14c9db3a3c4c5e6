import { describe, expect, it } from 'vitest';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig, OptionalLimits } from '../../src/engine/config.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Order } from '../../src/engine/orders/order.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import { bars, ENGINE_DEFAULTS, flat, MARGIN, play, START } from './market.ts';
import type { Candle, Script } from './market.ts';

const MINUTE = 60_000;
const at = (price: number): Candle => [price, price, price, price];
const prices = (...closes: readonly number[]) => bars(closes.map(at), START, MINUTE);
const withOptionalLimits = (optionalLimits: OptionalLimits): Partial<EngineConfig> => ({
  account: MARGIN,
  optionalLimits,
});

describe('price_collar_period', () => {
  const collar = withOptionalLimits({ price_collar_period: { seconds: 120, bps: 100 } });
  const denied = (closes: readonly number[], script: Script, config = collar) =>
    play({ bars: prices(...closes), config, script }).ends.filter(([, , status]) => {
      return status === 'denied';
    });
  const limit = (price: number) => ({ type: 'limit', limit: price }) as const;

  it('denies a limit price too far from earlier ones in either direction, and accepts one at the edge', () => {
    const found = denied(
      flat(2).map(([price]) => price),
      {
        0: ({ buy }) => {
          buy(1, limit(90));
          buy(1, limit(90.9));
          buy(1, limit(90.91));
          buy(1, limit(89.9));
          buy(1, limit(89.99));
        },
      },
    );
    expect(found).toEqual([
      [0, 3, 'denied', 'price_collar_period'],
      [0, 4, 'denied', 'price_collar_period'],
      // Both ends count, so 90.9 still applies.
      [0, 5, 'denied', 'price_collar_period'],
    ]);
  });

  it('ignores denied prices and those of the other side or other instruments', () => {
    const market = prices(100, 100);
    const { ends } = play({
      bars: { X: market, Y: market },
      config: collar,
      script: {
        0: ({ buy, sell, instruments: [, y] }) => {
          buy(1, limit(90));
          buy(1, limit(80));
          buy(1, limit(90.5));
          sell(1, limit(110));
          buy(1, { instrument: y!, ...limit(50) });
        },
      },
    });
    expect(ends).toEqual([[0, 2, 'denied', 'price_collar_period']]);
  });

  it('follows fills, so that no order chases a moving price', () => {
    const found = denied([100, 100, 100.9, 102, 102], {
      0: ({ buy }) => buy(1),
      2: ({ buy }) => buy(1),
      3: ({ buy }) => buy(1),
    });
    expect(found).toEqual([[3, 3, 'denied', 'price_collar_period']]);
  });

  it('forgets prices only after the window', () => {
    const closes = [100, 100, 100, 110, 110];
    const buyAt = (step: number): Script => ({
      0: ({ buy }) => buy(1),
      [step]: ({ buy }) => buy(1),
    });
    expect(denied(closes, buyAt(3))).toHaveLength(1);
    expect(denied(closes, buyAt(4))).toEqual([]);
  });

  it('checks a target again at the price that fills it', () => {
    const target: Script = {
      0: ({ buy }) => buy(1),
      1: ({ broker, instruments: [x] }) => broker.target(x!, 0.5),
    };
    expect(denied([100, 100, 105], target)).toEqual([[2, 2, 'denied', 'price_collar_period']]);
    expect(denied([100, 100, 100.5], target)).toEqual([]);
  });

  it('compares a stop with the paid price, but ignores exits of a bracket', () => {
    const found = denied([100, 100, 100, 100], {
      0: ({ buy, sell }) => {
        sell(1);
        buy(2, { takeProfit: { percent: 0.05 }, stopLoss: { percent: 0.05 } });
      },
      1: ({ sell }) => {
        sell(1, { type: 'stop', stop: 95 });
        sell(1);
      },
    });
    expect(found).toMatchObject([[1, expect.any(Number), 'denied', 'price_collar_period']]);
  });
});

describe('messages_kept_for_cancels', () => {
  const config: Partial<EngineConfig> = {
    risk: { ...NO_RISK_LIMITS, max_messages_per_second: 5 },
    optionalLimits: { messages_kept_for_cancels: 2 },
  };
  const limit = { type: 'limit', limit: 90 } as const;

  it('denies orders while there is still room for cancels, and never denies a cancel', () => {
    const statuses: string[] = [];
    const { ends } = play({
      bars: prices(100, 100, 100),
      config,
      script: {
        0: ({ buy, broker }) => {
          const orders = Array.from({ length: 4 }, () => buy(1, limit));
          for (const order of orders.slice(0, 3)) broker.cancel(order);
          statuses.push(...orders.map(({ status }) => status), buy(1, limit).reason!);
        },
        1: ({ buy }) => statuses.push(buy(1, limit).status),
      },
    });
    expect(statuses).toEqual([
      'canceled',
      'canceled',
      'canceled',
      'denied',
      'max_messages_per_second',
      'working',
    ]);
    expect(ends[0]).toEqual([0, 4, 'denied', 'messages_kept_for_cancels']);
  });

  it('keeps the reserve after cancels, too', () => {
    const reasons: unknown[] = [];
    play({
      bars: prices(100, 100),
      config,
      script: {
        0: ({ buy, broker }) => {
          broker.cancel(buy(1, limit));
          reasons.push(buy(1, limit).reason, buy(1, limit).reason);
        },
      },
    });
    expect(reasons).toEqual([undefined, 'messages_kept_for_cancels']);
  });

  it('does not delay a halt', () => {
    const strategy = defineStrategy({
      name: 'many',
      description: 'Uses up its messages.',
      params: {},
      create: ({ broker, instruments: [instrument] }) => ({
        onBar() {
          for (let i = 0; i < 5; i += 1) {
            broker.order({ instrument: instrument, side: 'buy', quantity: 1, ...limit });
          }
        },
      }),
    });
    const engine = new Engine({
      instruments: [{ symbol: 'X', bars: prices(100) }],
      strategy,
      params: {},
      config: { ...ENGINE_DEFAULTS, ...config },
    });
    engine.advance(1);
    expect(engine.run.working).toHaveLength(3);
    engine.halt();
    expect(engine.run.working).toEqual([]);
  });
});

describe('repeated_execution', () => {
  const config = withOptionalLimits({ repeated_execution: { count: 3, seconds: 180 } });

  it('denies every order after the last execution that is allowed, for the rest of the run', () => {
    const { ends, events, fills } = play({
      bars: bars(flat(200), START, MINUTE),
      config,
      everyBar: ({ buy }) => buy(1),
    });
    expect(fills).toHaveLength(3);
    expect(ends).toHaveLength(197);
    expect(ends.every(([, , , reason]) => reason === 'repeated_execution')).toBe(true);
    expect(events.filter(({ kind }) => kind === 'account.latched')).toEqual([
      {
        seq: expect.any(Number),
        time: new Date(START + 3 * MINUTE).toISOString(),
        kind: 'account.latched',
        order: 3,
        symbol: 'X',
        control: 'repeated_execution',
        side: 'buy',
        count: 3,
        seconds: 180,
      },
    ]);
  });

  it('denies even orders that reduce a position, but keeps working orders and allows their cancellation', () => {
    let stop: Readonly<Order> | undefined;
    const { ends } = play({
      bars: bars(flat(8), START, MINUTE),
      config,
      script: {
        0: ({ buy, sell }) => {
          for (let i = 0; i < 3; i += 1) buy(1);
          stop = sell(1, { type: 'stop', stop: 90 });
        },
        2: ({ sell }) => sell(1, { reduceOnly: true }),
        3: ({ broker }) => broker.cancel(stop!),
      },
    });
    expect(ends).toEqual([
      [2, 5, 'denied', 'repeated_execution'],
      [3, 4, 'canceled', 'canceled_by_strategy'],
    ]);
  });

  it('counts sides and instruments separately, and only within the window', () => {
    const market = bars(flat(30), START, MINUTE);
    const { ends, fills } = play({
      bars: { X: market, Y: market },
      config,
      everyBar: ({ step, order, instruments }) => {
        // The same side of an instrument repeats after four minutes.
        const side = step % 2 === 0 ? 'buy' : 'sell';
        order({ instrument: instruments[step % 4 < 2 ? 0 : 1]!, side, quantity: 1 });
      },
    });
    expect(ends).toEqual([]);
    expect(fills).toHaveLength(29);
  });

  it('counts an order that is filled in parts once', () => {
    const { ends, fills } = play({
      bars: bars(flat(8), START, MINUTE),
      config: { ...config, fill: { model: 'volume_share', limit: 0.001 } },
      script: { 0: ({ buy }) => buy(5), 6: ({ buy }) => buy(1) },
    });
    expect(fills).toHaveLength(6);
    expect(ends).toEqual([]);
  });
});

describe('permitted', () => {
  it('denies orders and targets for other instruments', () => {
    const market = prices(100, 100);
    const { ends, fills } = play({
      bars: { X: market, Y: market },
      config: withOptionalLimits({ permitted: ['Y'] }),
      script: {
        0: ({ buy, broker, instruments: [x, y] }) => {
          buy(1);
          broker.target(x!, 0.1);
          buy(1, { instrument: y! });
        },
      },
    });
    expect(ends).toEqual([
      [0, 1, 'denied', 'instrument_not_permitted'],
      [0, 2, 'denied', 'instrument_not_permitted'],
    ]);
    expect(fills).toHaveLength(1);
  });
});
