import { describe, expect, it } from 'vitest';
import { compareWithBenchmark, holdEquity } from '../../src/backtest/benchmark.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import { daily, day, run } from './golden.ts';

const EQUITY = [10_000, 10_100, 10_050, 10_300, 10_150, 10_400, 10_350, 10_600];
const PRICES = [50, 51, 50.5, 52, 51, 51.5, 52.5, 53];

const held = (prices: readonly number[], cash = 10_000): Float64Array =>
  Float64Array.from(prices, (price) => (cash / prices[0]!) * price);

describe('a run against its benchmark', () => {
  const figures = run({ equity: EQUITY });
  const conventions = daily(figures.time);
  const { benchmark } = compareWithBenchmark(figures, { equity: held(PRICES) }, conventions);

  // Computed with linear_regression, correlation, stdev and mean of Python's module `statistics`.
  it.each([
    ['alpha', 1.137_110_009_053_379_2],
    ['beta', 0.631_706_235_271_034_8],
    ['correlation', 0.658_119_803_535_130_7],
    ['tracking_error', 0.268_988_307_521_771_05],
    ['information_ratio', -0.014_350_054_461_839_625],
  ] as const)('has the %s of a regression computed independently', (name, expected) => {
    expect(benchmark[name]).toBeCloseTo(expected, 11);
  });

  it('subtracts the risk-free rate from both', () => {
    const { benchmark: excess } = compareWithBenchmark(
      figures,
      { equity: held(PRICES) },
      { ...conventions, risk_free: 0.05 },
    );
    expect(excess.alpha).toBeCloseTo(1.118_695_320_816_931, 11);
    expect(excess.beta).toBe(benchmark.beta);
  });

  it('states the figures of holding the benchmark', () => {
    expect(benchmark.name).toBe('buy_and_hold');
    expect(benchmark.total).toBeCloseTo(0.06, 12);
    expect(benchmark.max_drawdown).toBeCloseTo(51 / 52 - 1, 12);
  });

  it('pairs the same days if only one of both starts with an additional sample', () => {
    // A fill in the first bar adds the starting cash to the samples of the run.
    const early = run({ equity: [9990, ...EQUITY.slice(1)], initialCash: 10_000 });
    const { benchmark: same } = compareWithBenchmark(early, { equity: held(PRICES) }, conventions);
    const [first, ...rest] = EQUITY.map((value, i) => value / (i === 1 ? 9990 : EQUITY[i - 1]!));
    expect(first).toBeDefined();
    const x = PRICES.slice(1).map((price, i) => price / PRICES[i]! - 1);
    const y = rest.map((growth) => growth - 1);
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    const product = (a: readonly number[], b: readonly number[]): number =>
      mean(a.map((value, i) => value * b[i]!)) - mean(a) * mean(b);
    expect(same.beta).toBeCloseTo(product(x, y) / product(x, x), 9);
  });

  it('gives the reason for each figure that does not exist', () => {
    const of = (equity: readonly number[], prices: readonly number[]) =>
      compareWithBenchmark(run({ equity }), { equity: held(prices, equity[0]) }, conventions);
    expect(of(EQUITY, [5, 5, 5, 5, 5, 5, 5, 5]).undefined).toEqual({
      'benchmark.alpha': 'constant_benchmark',
      'benchmark.beta': 'constant_benchmark',
      'benchmark.correlation': 'constant_benchmark',
    });
    expect(of(EQUITY, EQUITY).undefined).toEqual({
      'benchmark.information_ratio': 'equals_benchmark',
    });
    expect(of([100, 100, 100], [1, 2, 3]).undefined).toEqual({
      'benchmark.correlation': 'zero_variance',
    });
    expect(of([100, 110], [1, 2]).undefined['benchmark.beta']).toBe('too_few_returns');
    expect(of([100, -10, 20], [1, 2, 3]).undefined['benchmark.alpha']).toBe('equity_not_positive');
  });
});

it('a benchmark that begins later than the run is cash until then', () => {
  const bars = barsFromRows([
    [day(1), 10, 10, 10, 10, 1],
    [day(2), 10, 12, 10, 12, 1],
  ]);
  const time = Float64Array.of(day(0), day(1), day(2), day(3));
  expect([...holdEquity([{ bars }], time, 100)]).toEqual([100, 100, 120, 120]);
});
