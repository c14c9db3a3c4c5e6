import { describe, expect, it } from 'vitest';
import { DAY } from '../../../src/base/durations.ts';
import { meanBlockLength } from '../../../src/backtest/robustness/block-length.ts';
import { bootstrap, type BootstrapFigure } from '../../../src/backtest/robustness/bootstrap.ts';
import { drawdownsOf } from '../../../src/backtest/returns.ts';
import { conventionsFor } from '../../../src/backtest/statistics.ts';
import { isAtLength, some } from '../../length.ts';
import { normals } from './noise.ts';

const conventions = conventionsFor(
  Float64Array.from({ length: 14 }, (_, day) => day * DAY),
  { barMs: DAY },
);
const DEVIATION = 0.01;
const MEAN = 0.0006;

/** Returns with this mean and standard deviation, each correlated with the one before. */
function returnsOf(count: number, correlation: number, normal: () => number): Float64Array {
  const returns = new Float64Array(count);
  let state = normal();
  for (let i = 0; i < count; i++) {
    state = correlation * state + Math.sqrt(1 - correlation ** 2) * normal();
    returns[i] = MEAN + DEVIATION * state;
  }
  return returns;
}

function maxDrawdown(returns: Float64Array): number {
  let equity = 1;
  return Math.min(
    ...drawdownsOf(
      returns.map((value) => (equity *= 1 + value)),
      1,
    ),
  );
}

describe('the mean block length', () => {
  it('is short without dependence and grows with it', () => {
    const lengths = [0, 0.3, 0.6, 0.9].map((correlation) =>
      meanBlockLength(returnsOf(2000, correlation, normals(3))),
    );
    expect(lengths.toSorted((a, b) => a - b)).toEqual(lengths);
    expect(lengths[0]).toBeLessThan(5);
    expect(lengths[3]).toBeGreaterThan(20);
  });

  it('approaches the optimum of Politis and White for an autoregression', () => {
    // With γ(k) = φ^|k|: G = Σ|k|γ(k) = 2φ/(1−φ)², g = Σγ(k) = (1+φ)/(1−φ), and b = (G/g)^⅔ n^⅓.
    const [n, phi] = [20_000, 0.5];
    const optimum = ((2 * phi) / (1 - phi ** 2)) ** (2 / 3) * n ** (1 / 3);
    const normal = normals(7);
    const found = Array.from({ length: 5 }, () => meanBlockLength(returnsOf(n, phi, normal)));
    const mean = found.reduce((sum, length) => sum + length / found.length, 0);
    expect(mean / optimum).toBeGreaterThan(0.8);
    expect(mean / optimum).toBeLessThan(1.25);
  });

  it('is 1 for returns that do not vary', () => {
    expect(meanBlockLength(new Float64Array(100))).toBe(1);
  });
});

describe('the intervals', () => {
  // The standard error of a share of 95 % of 150 is 1.8 %; in `npm run test:long`, of 2,000, 0.5 %.
  const simulations = isAtLength ? 2000 : 150;
  const resamples = isAtLength ? 499 : 99;
  const tolerance = isAtLength ? 0.02 : 0.05;

  it.each(
    some(1, [
      ['independent returns', 250, 0],
      ['dependent returns', 300, 0.2],
      ['strongly dependent returns', 300, 0.5],
      ['returns that reverse', 300, -0.2],
      ['few dependent returns', 100, 0.2],
    ] as const),
  )('cover the true figures of %s in 95 %% of simulations', (_, count, correlation) => {
    const normal = normals(11);
    const sample = returnsOf(200_000, 0, normals(12));
    const mean = (of: (value: number) => number): number =>
      sample.reduce((sum, value) => sum + of(value) / sample.length, 0);
    const growth = mean(Math.log1p);
    const scale = Math.sqrt(conventions.periods_per_year);
    const truth = {
      total_return: Math.expm1(growth * count),
      cagr: Math.expm1(growth * 365),
      sharpe: (MEAN / DEVIATION) * scale,
      sortino: (MEAN / Math.sqrt(mean((value) => Math.min(value, 0) ** 2))) * scale,
    };
    const covered = { total_return: 0, cagr: 0, sharpe: 0, sortino: 0, max_drawdown: 0 };
    for (let seed = 0; seed < simulations; seed++) {
      const returns = returnsOf(count, correlation, normal);
      const options = { conventions, years: count / 365, resamples, seed };
      const { intervals } = bootstrap(returns, options)!;
      // The drawdown of another history of the same strategy.
      const another = maxDrawdown(returnsOf(count, correlation, normal));
      const figures = { ...truth, max_drawdown: another };
      for (const name of Object.keys(covered) as BootstrapFigure[]) {
        const { low, high } = intervals[name]!;
        if (low <= figures[name] && figures[name] <= high) covered[name] += 1 / simulations;
      }
    }
    for (const name of ['total_return', 'cagr', 'sharpe', 'sortino'] as const) {
      expect(Math.abs(covered[name] - 0.95), name).toBeLessThan(tolerance);
    }
    expect(covered.max_drawdown).toBeGreaterThan(0.8);
  });

  it('hardly depend on the position of a single large loss', () => {
    const returns = returnsOf(252, 0, normals(4));
    const widths = [0, 1, 100, 251].map((day) => {
      const changed = returns.with(day, -0.2);
      const options = { conventions, years: 1, resamples: 999, seed: 5 };
      const { low, high } = bootstrap(changed, options)!.intervals.sharpe!;
      return high - low;
    });
    expect(Math.max(...widths) / Math.min(...widths)).toBeLessThan(1.2);
  });

  it('depend on the seed alone', () => {
    const returns = returnsOf(100, 0, normals(1));
    const of = (seed: number) =>
      bootstrap(returns, { conventions, years: 1, resamples: 100, seed });
    expect(of(5)).toEqual(of(5));
    expect(of(6)).not.toEqual(of(5));
  });

  it('are undefined for few returns, a lost account, and a figure without variation', () => {
    const options = { conventions, years: 1, resamples: 50, seed: 1 };
    expect(bootstrap(new Float64Array(59), options)).toBeUndefined();
    expect(bootstrap(new Float64Array(100).fill(-1), options)).toBeUndefined();
    const { sharpe, sortino } = bootstrap(new Float64Array(100), options)!.intervals;
    expect([sharpe, sortino]).toEqual([null, null]);
    const rising = returnsOf(100, 0, normals(2)).map((value) => Math.abs(value) + 0.001);
    const { intervals } = bootstrap(rising, options)!;
    expect(intervals.sortino).toBeNull();
    expect(intervals.sharpe!.low).toBeGreaterThan(0);
  });
});
