/** A strategy cannot change a run by writing to or calling any object that it can reach. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import { Engine } from '../../src/engine/engine.ts';
import { bollinger } from '../../src/engine/indicators/bollinger.ts';
import { above } from '../../src/engine/series/condition.ts';
import type { Order, OrderRequest } from '../../src/engine/orders/order.ts';
import { integer, choice } from '../../src/engine/params.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import { runs } from '../length.ts';
import { bars, ENGINE_DEFAULTS, flat, MARGIN, play } from './market.ts';
import type { Candle, Played, Scene } from './market.ts';
import { enact, namedMarkets, scenario } from './scenario.ts';

/** Built-in objects of JavaScript, which belong to the process, not to a run. */
const INTRINSICS = new Set<unknown>();
{
  const waiting: unknown[] = [globalThis, (function* () {})(), [][Symbol.iterator]()];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (!isObject(one) || INTRINSICS.has(one)) continue;
    INTRINSICS.add(one);
    waiting.push(Object.getPrototypeOf(one));
    for (const key of Reflect.ownKeys(one)) {
      const { value, get, set } = Reflect.getOwnPropertyDescriptor(one, key)!;
      // Node's and the tests' additions are not built-in objects.
      if (typeof key === 'string' && one === globalThis && !/^[A-Z]/.test(key)) continue;
      waiting.push(value, get, set);
    }
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** Everything reachable from these: properties, results of getters, prototypes and constructors. */
function reachable(roots: readonly unknown[]): Set<object> {
  const found = new Set<object>();
  const waiting = [...roots];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (!isObject(one) || INTRINSICS.has(one) || found.has(one)) continue;
    found.add(one);
    for (let owner: object | null = one; owner !== null; owner = Object.getPrototypeOf(owner)) {
      if (INTRINSICS.has(owner)) break;
      waiting.push(owner);
      for (const key of Reflect.ownKeys(owner)) {
        const { value, get, set } = Reflect.getOwnPropertyDescriptor(owner, key)!;
        waiting.push(
          value,
          get,
          set,
          attempt(() => get?.call(one)),
        );
      }
    }
  }
  return found;
}

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

const candle = (price: number): Candle => [price, price, price, price];

const WEIRD = [undefined, null, Number.NaN, -1, 1e9, '1', 'close', true, {}, [], () => 7] as const;

/** Writes to an object in every possible way. */
function deface(one: object): void {
  const forged = { value: 12_345, writable: true, configurable: true };
  for (const key of [...Reflect.ownKeys(one), 'forged', 'quantity', 'close', 0]) {
    attempt(() => Reflect.set(one, key, 12_345));
    attempt(() => Reflect.defineProperty(one, key, forged));
    attempt(() => Reflect.defineProperty(one, key, { get: () => 12_345, configurable: true }));
    attempt(() => Reflect.deleteProperty(one, key));
  }
  attempt(() => Reflect.setPrototypeOf(one, { quantity: 12_345 }));
  if (Array.isArray(one)) {
    for (const change of ['push', 'pop', 'reverse', 'shift', 'sort', 'fill'] as const) {
      attempt(() => (one as number[])[change as 'push'](12_345));
    }
    attempt(() => (one.length = 0));
  }
  if (ArrayBuffer.isView(one)) attempt(() => (one as Float64Array).fill(12_345));
}

/** Calls every function with invalid arguments, as a method of every object. */
function misuse(objects: ReadonlySet<object>, { instruments, broker }: Scene): void {
  const [x] = instruments;
  const senseless = [
    ...WEIRD.map((value) => [value]),
    // A finite weight would be a valid target.
    ...WEIRD.filter((value) => !Number.isFinite(value)).map((value) => [x, value]),
    ...WEIRD.map((value) => ['close', value]),
    ...WEIRD.map((value) => [{ instrument: x, side: value, quantity: 1 }]),
    ...WEIRD.filter((value) => value !== 1e9).map((quantity) => [
      { instrument: x, side: 'buy', quantity },
    ]),
    ...WEIRD.filter((value) => value !== 1e9).map((limit) => [
      { instrument: x, side: 'buy', quantity: 1, type: 'limit', limit },
    ]),
    [{ instrument: Object.assign({}, x), side: 'buy', quantity: 1 }],
    [Object.create(x!), 1],
    [new Proxy(x!, {}), 1],
    [broker],
    [],
  ];
  for (const one of objects) {
    for (const key of Reflect.ownKeys(one)) {
      const value = attempt(() => (one as Record<PropertyKey, unknown>)[key]);
      if (typeof value !== 'function') continue;
      for (const values of senseless) {
        attempt(() => Reflect.apply(value, one, values));
        attempt(() => Reflect.construct(value, values));
      }
    }
  }
}

/** Attacks the context of a strategy and returns the attacked objects. */
function meddle(scene: Scene, ...more: readonly unknown[]): number {
  const { broker, context, instruments } = scene;
  const working = broker.working();
  const objects = reachable([context, broker, working, ...working, ...instruments, ...more]);
  // The context and the functions of the strategy belong to the test.
  for (const one of objects) if (one !== context) deface(one);
  misuse(objects, scene);
  return objects.size;
}

const outcome = ({ events, result }: Played): unknown => [
  events,
  result.equity,
  result.orders,
  result.trades,
];

describe('a run', () => {
  it('has the same result if its strategy writes to reachable objects', () => {
    let attacked = 0;
    fc.assert(
      fc.property(scenario, (drawn) => {
        const markets = namedMarkets(drawn.markets);
        const plain = enact(drawn, markets);
        const attack = (scene: Scene, fill?: unknown): void => {
          if (scene.step % 5 < 2) attacked = Math.max(attacked, meddle(scene, fill));
        };
        expect(outcome(enact(drawn, markets, undefined, attack))).toEqual(outcome(plain));
        // A later run in the same process is unaffected, too.
        expect(outcome(enact(drawn, markets))).toEqual(outcome(plain));
      }),
      { numRuns: runs(25) },
    );
    // At least broker, instruments, views and their classes.
    expect(attacked).toBeGreaterThan(20);
  });

  it('has the same declared series if its strategy writes to them', () => {
    const read = (isAttacked: boolean): unknown[] => {
      const values: unknown[] = [];
      const strategy = defineStrategy({
        name: 'reader',
        description: 'Reads declared series.',
        params: {},
        indicators: ({ instruments: [x] }) => ({
          x,
          bands: bollinger(x.close, 3),
          isHigh: above(x.close, 3),
        }),
        create({ indicators: { x, bands, isHigh } }) {
          return {
            onBar() {
              values.push([x.close.value, bands.upper.value, bands.lower.ago(1)]);
              const found = reachable([x, bands, isHigh]);
              expect([...found].filter((one) => ArrayBuffer.isView(one))).toEqual([]);
              if (isAttacked) for (const one of found) deface(one);
            },
          };
        },
      });
      const instruments = [{ symbol: 'X', bars: bars([1, 2, 4, 7, 5, 6].map(candle)) }];
      const engine = new Engine({ instruments, strategy, params: {}, config: ENGINE_DEFAULTS });
      while (engine.advance(1));
      return values;
    };
    const plain = read(false);
    expect(read(true)).toEqual(plain);
    expect(read(false)).toEqual(plain);
  });

  it('is unaffected if its strategy changes a request afterwards', () => {
    const request = {
      side: 'buy' as const,
      quantity: 1,
      takeProfit: { percent: 0.1 },
      stopLoss: { percent: 0.1 },
    };
    const { events } = play({
      bars: bars(flat(3)),
      script: {
        0: ({ order }) => {
          order(request);
          Object.assign(request.takeProfit, { percent: 0.5 });
          Object.assign(request, { quantity: 50 });
        },
      },
    });
    expect(events.find((event) => event.kind === 'order.filled')).toMatchObject({ quantity: 1 });
    const target = events.findLast((event) => event.kind === 'order.submitted');
    expect(target).toMatchObject({ limit: 100 * 1.1 });
  });

  it('reads a request once, so that it is checked with the values with which it is placed', () => {
    const answers = [1, -50, -50, -50];
    const { events } = play({
      bars: bars(flat(3)),
      config: { account: MARGIN },
      script: {
        0: ({ order }) => {
          const request = { side: 'buy' } as OrderRequest;
          Object.defineProperty(request, 'quantity', {
            enumerable: true,
            get: () => answers.shift(),
          });
          order(request);
        },
      },
    });
    expect(events.at(-1)).toMatchObject({ kind: 'order.filled', quantity: 1, position: 1 });
  });
});

describe('an order that a strategy holds', () => {
  const risk = { ...NO_RISK_LIMITS, max_order_qty: 2 };

  it.each<[string, (scene: Scene) => Readonly<Order>]>([
    ['broker.order', ({ buy }) => buy(1)],
    ['broker.target', ({ broker, instruments: [x] }) => broker.target(x!, 0.001)],
    ['broker.working', ({ broker, buy }) => (buy(1), broker.working()[0]!)],
  ])('from %s cannot be changed to bypass a limit', (_, place) => {
    const { events } = play({
      bars: bars(flat(3)),
      config: { risk },
      script: {
        0: (scene) => {
          const order = place(scene) as { quantity: number };
          expect(() => (order.quantity = 50)).toThrow(TypeError);
        },
      },
    });
    expect(events.at(-1)).toMatchObject({ kind: 'order.filled', quantity: 1 });
  });

  it('shows the current state of the order, is the same object each time, and prints its fields', () => {
    let held: Readonly<Order> | undefined;
    play({
      bars: bars(flat(3)),
      script: {
        0: ({ buy, broker }) => {
          held = buy(2, { stopLoss: 90 });
          expect(broker.working()[0]).toBe(held);
          expect(held).toMatchObject({ status: 'working', filled: 0 });
        },
      },
      onFill: (_, { order }) => {
        expect(order).toBe(held);
        expect(() => ((order as { filled: number }).filled = 0)).toThrow(TypeError);
      },
    });
    expect(held).toMatchObject({ status: 'filled', filled: 2 });
    expect(JSON.parse(JSON.stringify(held))).toEqual({
      symbol: 'X',
      id: 1,
      side: 'buy',
      type: 'market',
      timeInForce: 'gtc',
      quantity: 2,
      postOnly: false,
      reduceOnly: false,
      stopLoss: 90,
      ocoGroup: 0,
      parent: 0,
      status: 'filled',
      filled: 2,
      triggered: false,
      session: 19_724,
    });
  });
});

it('a definition cannot be changed after its creation', () => {
  const strategy = defineStrategy({
    name: 'fixed',
    description: 'made by a test',
    params: { size: integer({ default: 1 }), kind: choice({ default: 'a', choices: ['a', 'b'] }) },
    create: () => ({ onBar() {} }),
  });
  const { size, kind } = strategy.params;
  expect(() => ((size as { default: number }).default = 2)).toThrow(TypeError);
  expect(() => (kind.choices as string[]).push('c')).toThrow(TypeError);
  expect(() => ((strategy.params as Record<string, unknown>)['more'] = size)).toThrow(TypeError);
  expect(() => ((strategy as { name: string }).name = 'other')).toThrow(TypeError);
});
