import { describe, expect, it } from 'vitest';
import { NO_RISK_LIMITS, type EngineConfig } from '../../src/engine/config.ts';
import { Engine } from '../../src/engine/engine.ts';
import { forkStrategy } from '../../src/engine/forked-strategy.ts';
import { sma } from '../../src/engine/indicators/sma.ts';
import { integer, number, resolveParams } from '../../src/engine/params.ts';
import { crossedAbove, crossedBelow } from '../../src/engine/series/condition.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { defineStrategy, type Strategy } from '../../src/engine/strategy.ts';
import type { Order } from '../../src/engine/orders/order.ts';
import { barsFromRows } from '../../src/market/bars.ts';

const DAY = 86_400_000;
const CONFIG: EngineConfig = {
  cash: 100_000,
  fill: { model: 'next_open' },
  units: 'fractional',
  fees: { model: 'percent', rate: 0.001, min: 0 },
  slippage: { model: 'none' },
  account: { model: 'margin', initial: 0.5, maintenance: 0.25 },
  risk: NO_RISK_LIMITS,
  seed: 7,
};

function barsOf(shift: number) {
  const price = (at: number): number =>
    100 + 20 * Math.sin((at + shift) / 17) + 5 * Math.sin((at + 3 * shift) / 3);
  return barsFromRows(
    Array.from({ length: 300 }, (_, at) => {
      const [open, close] = [price(at), price(at + 1)];
      return [at * DAY, open, Math.max(open, close) + 1, Math.min(open, close) - 1, close, 1000];
    }),
  );
}

const SYMBOLS = ['A', 'B', 'C'].map((symbol, at) => ({ symbol, bars: barsOf(40 * at) }));

function run(strategy: Strategy, params: object, count = 1) {
  const instruments = SYMBOLS.slice(0, count);
  const { values } = resolveParams(strategy.params, params as Record<string, unknown>);
  const engine = new Engine({ instruments, strategy, params: values, config: CONFIG });
  engine.advance(Infinity);
  return [...engine.result().journal.events()];
}

function fork(strategy: Strategy, past: object, until: number): Strategy {
  const { values } = resolveParams(strategy.params, past as Record<string, unknown>);
  return forkStrategy(strategy, { params: values, until, seed: CONFIG.seed });
}

const UNTIL = 150 * DAY;

/** Keeps orders and counts, and places a random one now and then. */
const STATEFUL = defineStrategy({
  name: 'own',
  description: 'Of a test.',
  params: { every: integer({ default: 7, min: 1 }), distance: number({ default: 3 }) },
  create(context) {
    const {
      params,
      instruments: [asset],
      broker,
    } = context;
    let stop: Order | undefined;
    let filled = 0;
    let bars = 0;
    return {
      onFill() {
        filled += 1;
      },
      onBar() {
        bars += 1;
        if (stop?.status === 'working') {
          if (bars % 5 === 0) broker.cancel(stop);
          return;
        }
        if (broker.working(asset).length > 0 || bars % params.every !== 0) return;
        const isBuy = context.random() < 0.5;
        const quantity = 1 + filled;
        const price = asset.close + (isBuy ? 1 : -1) * params.distance;
        stop = broker.order({
          instrument: asset,
          side: isBuy ? 'buy' : 'sell',
          quantity,
          type: 'stop',
          stop: price,
        });
      },
    };
  },
}) as unknown as Strategy;

describe('a forked strategy', () => {
  const counts: Readonly<Record<string, number>> = { pairs_reversion: 2, momentum_rotation: 3 };
  const all = [...BUILT_IN_STRATEGIES.values(), STATEFUL].filter(({ signals }) => !signals);
  it.each(all.map((strategy) => [strategy.name, strategy] as const))(
    'with equal parameters gives the events of %s',
    (name, strategy) => {
      const count = counts[name] ?? 1;
      const events = run(strategy, {}, count);
      expect(events.length).toBeGreaterThan(1);
      expect(run(fork(strategy, {}, UNTIL), {}, count)).toEqual(events);
    },
  );

  it('gives the events of a strategy that changes its averages by hand', () => {
    const hand = defineStrategy({
      name: 'by_hand',
      description: 'Of a test.',
      params: {},
      indicators: ({ instruments: [asset] }) => ({
        before: sma(asset.close, 10),
        after: sma(asset.close, 4),
        slow: sma(asset.close, 30),
      }),
      create({ instruments: [asset], indicators: { before, after, slow }, broker }) {
        const isLong = { before: false, after: false };
        return {
          onBar() {
            const isPast = asset.time <= UNTIL;
            for (const [name, fast] of [
              ['before', before],
              ['after', after],
            ] as const) {
              if (!(isLong[name] ? crossedBelow(fast, slow) : crossedAbove(fast, slow))) continue;
              isLong[name] = !isLong[name];
              if (isPast === (name === 'before')) broker.target(asset, isLong[name] ? 1 : 0);
            }
          },
        };
      },
    }) as unknown as Strategy;
    const forked = run(fork(BUILT_IN_STRATEGIES.get('sma_crossover')!, { fast: 10 }, UNTIL), {
      fast: 4,
    });
    expect(forked).toEqual(run(hand, {}));
    const session = run(BUILT_IN_STRATEGIES.get('sma_crossover')!, { fast: 10 });
    const first = forked.findIndex(
      (event, at) => event.seq !== session[at]?.seq || event.time !== session[at]?.time,
    );
    expect(Date.parse(forked[first]!.time)).toBeGreaterThan(UNTIL);
  });

  it('keeps the working orders of the past, and denies the others of the past', () => {
    const seen: string[] = [];
    const strategy = defineStrategy({
      name: 'own',
      description: 'Of a test.',
      params: { quantity: integer({ default: 1 }) },
      create({ params: { quantity }, instruments: [asset], broker }) {
        return {
          onBar() {
            if (asset.count === 3) {
              const request = { instrument: asset, side: 'buy', quantity, type: 'limit' } as const;
              seen.push(broker.order({ ...request, limit: 1 }).status);
            }
            if (asset.count === 6)
              seen.push(
                broker
                  .working(asset)
                  .map((one) => one.quantity)
                  .join(),
              );
          },
        };
      },
    }) as unknown as Strategy;
    run(fork(strategy, { quantity: 5 }, 3 * DAY), { quantity: 8 });
    expect(seen).toEqual(['working', 'denied', '5']);
  });
});
