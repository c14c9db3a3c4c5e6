import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EngineConfig } from '../../src/engine/config.ts';
import { growingSignals } from '../../src/engine/model-signals.ts';
import { seededRandom } from '../../src/engine/random.ts';
import type { Bars } from '../../src/market/bars.ts';
import { runs } from '../length.ts';
import { backtest, bars, DAY, flat, sp500, START } from './market.ts';
import type { Candle } from './market.ts';
import * as reference from './reference.ts';
import type { Money } from './reference.ts';

describe('sma_crossover 10/30 on the S&P 500 matches backtrader, bt and vectorbt:', () => {
  it.each([
    {
      units: 'fractional',
      equity: 137695.03785699606,
      drawdown: -0.3140668317462224,
      profitFactor: 1.2647435202582167,
      fees: 18600.62865739678,
    },
    {
      units: 'whole',
      equity: 137507.00819687988,
      drawdown: -0.31208142811636574,
      profitFactor: 1.2657902936879735,
      fees: 18448.420251121,
    },
  ] as const)('in $units units', ({ units, ...expected }) => {
    const { result } = backtest(
      'sma_crossover',
      { fast: 10, slow: 30 },
      { X: sp500() },
      { units, fees: { model: 'percent', rate: 0.001, min: 0 } },
    );
    const won = result.trades.filter(({ pnl }) => pnl > 0);
    const lost = result.trades.filter(({ pnl }) => pnl < 0);
    const sum = (trades: typeof won): number => trades.reduce((total, { pnl }) => total + pnl, 0);

    expect(result.equity.at(-1)! / expected.equity).toBeCloseTo(1, 9);
    expect(reference.maxDrawdown(result.equity) / expected.drawdown).toBeCloseTo(1, 9);
    expect(sum(won) / -sum(lost) / expected.profitFactor).toBeCloseTo(1, 9);
    expect(result.fees / expected.fees).toBeCloseTo(1, 9);
    expect(result.orders).toEqual({
      submitted: 175,
      filled: 175,
      fills: 175,
      canceled: 0,
      expired: 0,
      working: 0,
      rejected: {},
      denied: {},
      limited: {},
    });
    expect(result.trades.length).toBe(87);
    expect(result.openTrades.length).toBe(1);
    expect(won.length / 87).toBe(0.41379310344827586);
    expect(result.stepsInMarket / result.steps).toBe(0.6137120470127326);
  });
});

it('model_signal buys from the score to enter on, and sells below the score to exit only', () => {
  const { signals, append } = growingSignals(['score'], 1);
  for (const score of [0.79, 0.8, 0.5, 0.49, 0.49]) append(0, [score]);
  const params = { enter: 0.8, exit: 0.5 };
  const { fills } = backtest('model_signal', params, { X: bars(flat(5)) }, {}, signals);
  expect(fills.map(([step]) => step)).toEqual([2, 4]);
});

describe('the built-in strategies and a naive reference', () => {
  const period = fc.integer({ min: 1, max: 12 });

  /** A strategy, its number of markets, arbitrary parameters and the reference implementation. */
  interface Subject {
    readonly name: string;
    readonly markets: readonly [fewest: number, most: number];
    readonly params: fc.Arbitrary<Readonly<Record<string, number>>>;
    readonly expected: (markets: readonly Bars[], params: never, money: Money) => reference.Outcome;
    readonly account?: EngineConfig['account'];
  }

  const subjects: readonly Subject[] = [
    {
      name: 'sma_crossover',
      markets: [1, 1],
      params: fc.tuple(period, period).map(([fast, more]) => ({ fast, slow: fast + more })),
      expected: ([X], ...rest) => reference.smaCrossover(X!, ...rest),
    },
    {
      name: 'rsi_reversion',
      markets: [1, 1],
      params: fc.record({
        period: fc.integer({ min: 2, max: 15 }),
        lower: fc.double({ min: 10.5, max: 48.5, noNaN: true }),
        upper: fc.double({ min: 51.5, max: 90.5, noNaN: true }),
      }),
      expected: ([X], ...rest) => reference.rsiReversion(X!, ...rest),
    },
    {
      name: 'donchian_breakout',
      markets: [1, 1],
      params: fc.record({ entry: period, exit: period }),
      expected: ([X], ...rest) => reference.donchianBreakout(X!, ...rest),
    },
    {
      name: 'momentum_rotation',
      markets: [3, 5],
      params: fc.record({ lookback: period, hold: period, top: fc.integer({ min: 1, max: 3 }) }),
      expected: reference.momentumRotation,
    },
    {
      name: 'pairs_reversion',
      markets: [2, 2],
      params: fc.record({
        lookback: fc.integer({ min: 3, max: 15 }),
        entry: fc.double({ min: 0.8, max: 2, noNaN: true }),
        exit: fc.double({ min: 0.1, max: 0.7, noNaN: true }),
      }),
      expected: reference.pairsReversion,
      account: { model: 'margin', initial: 0, maintenance: 0 },
    },
  ];

  // No round sums, for which rounding errors would decide whether 16 units are affordable.
  const money = fc.record({
    cash: fc.constantFrom(1000.370_421_7, 100_000.713_089_3),
    fee: fc.constantFrom(0, 0.001, 0.02),
    units: fc.constantFrom('fractional', 'whole'),
  });

  it.each(subjects)(
    '$name trades as the reference does',
    ({ name, markets, params, expected, account }) => {
      const [minLength, maxLength] = markets;
      const shapes = fc.array(shape(maxLength > 1), { minLength, maxLength });
      fc.assert(
        fc.property(shapes, params, money, (drawn, chosen, start) => {
          const histories = drawn.map(market);
          const { cash, fee, units } = start;
          const { result } = backtest(
            name,
            chosen,
            Object.fromEntries(histories.map((history, i) => [`M${i}`, history])),
            {
              cash,
              units,
              fees: { model: 'percent', rate: fee, min: 0 },
              ...(account !== undefined && { account }),
            },
          );
          const naive = expected(histories, chosen as never, start);
          expect(result.steps).toBe(naive.equity.length);
          expect(result.orders.fills).toBe(naive.fills);
          expect(result.trades.length).toBe(naive.closedTrades);
          expect(result.equity.at(-1)! / naive.equity.at(-1)!).toBeCloseTo(1, 9);
          expect(reference.maxDrawdown(result.equity)).toBeCloseTo(naive.maxDrawdown, 9);
          expect(result.fees).toBeCloseTo(naive.fees, 6);
        }),
        { numRuns: runs(38) },
      );
    },
  );

  interface Shape {
    readonly seed: number;
    readonly length: number;
    readonly drift: number;
    readonly gaps: boolean;
    /** Prices are multiples of this; 0 for any price. */
    readonly tick: number;
    /** Days without a bar. */
    readonly holes: boolean;
  }

  /** A single market may have a coarse grid, where averages are equal and bars have no range. */
  function shape(isOneOfMany: boolean): fc.Arbitrary<Shape> {
    return fc.record({
      seed: fc.nat(1e6),
      length: fc.integer({ min: 2, max: 160 }),
      drift: fc.constantFrom(-0.004, 0, 0.001, 0.006),
      gaps: fc.boolean(),
      tick: isOneOfMany ? fc.constant(0) : fc.constantFrom(0, 1 / 64, 1),
      holes: isOneOfMany ? fc.boolean() : fc.constant(false),
    });
  }

  function market({ seed, length, drift, gaps, tick, holes }: Shape): Bars {
    const random = seededRandom(seed);
    const round = (price: number): number =>
      tick === 0 ? price : Math.max(tick, Math.round(price / tick) * tick);
    let last = 40;
    const candles = Array.from({ length }, (): Candle => {
      const open = gaps ? round(last * (1 + (random() - 0.5) * 0.02)) : last;
      const close = round(open * (1 + drift + (random() - 0.5) * 0.06));
      last = close;
      const high = Math.max(open, close, round(Math.max(open, close) * (1 + random() * 0.01)));
      const low = Math.min(open, close, round(Math.min(open, close) * (1 - random() * 0.01)));
      return [open, high, low, close];
    });
    const history = bars(candles);
    let day = START;
    for (let i = 0; i < length; i += 1) {
      history.time[i] = day;
      day += holes && random() < 0.3 ? 2 * DAY : DAY;
    }
    return history;
  }
});
