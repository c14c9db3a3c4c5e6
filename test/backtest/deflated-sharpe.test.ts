import { describe, expect, it } from 'vitest';
import {
  deflatedSharpe,
  expectedMaxSharpe,
  momentsOf,
  probabilisticSharpe,
} from '../../src/backtest/deflated-sharpe.ts';
import { returnsOf } from '../../src/backtest/returns.ts';
import { goldenRun } from './golden.ts';

const returns = returnsOf(goldenRun().equity);

describe('moments', () => {
  it('match those of the golden run, adjusted for bias', () => {
    const moments = momentsOf(returns);
    expect(moments.mean).toBeCloseTo(0.000703154713, 12);
    expect(moments.deviation).toBeCloseTo(0.008987013879, 12);
    expect(moments.skewness).toBeCloseTo(-0.034989792, 9);
    expect(moments.kurtosis - 3).toBeCloseTo(-1.258682559, 9);
  });
});

describe('probabilistic Sharpe ratio', () => {
  it('takes the raw kurtosis', () => {
    const moments = momentsOf(returns);
    const sharpe = moments.mean / moments.deviation;
    expect(probabilisticSharpe({ ...moments, sharpe }, 0)).toBeCloseTo(0.96005972, 9);
  });

  it('is one half at its own benchmark', () => {
    const observed = { count: 100, sharpe: 0.1, skewness: -1, kurtosis: 5 };
    expect(probabilisticSharpe(observed, 0.1)).toBe(0.5);
  });
});

describe('deflated Sharpe ratio', () => {
  it('reproduces the example of the paper: 100 trials, five years, a Sharpe ratio of 2.5', () => {
    const expected = expectedMaxSharpe(100, 0.5) / Math.sqrt(250);
    expect(expected).toBeCloseTo(0.1132, 4);
    const observed = { count: 1250, sharpe: 2.5 / Math.sqrt(250), skewness: -3, kurtosis: 10 };
    expect(probabilisticSharpe(observed, expected)).toBeCloseTo(0.9004, 4);
  });

  it('expects a higher best ratio with more trials', () => {
    expect(expectedMaxSharpe(1, 1)).toBe(0);
    expect(expectedMaxSharpe(10, 1)).toBeCloseTo(1.57459830134575, 12);
    expect(expectedMaxSharpe(1000, 1)).toBeCloseTo(3.255121513652723, 12);
    expect(expectedMaxSharpe(10, 4)).toBeCloseTo(2 * expectedMaxSharpe(10, 1), 12);
  });

  it('counts trials without a ratio as trials', () => {
    const sharpes = [1.242040479, 0.3, -0.4, 0.8, null, 0.1];
    const variance = momentsOf(Float64Array.of(1.242040479, 0.3, -0.4, 0.8, 0.1)).deviation ** 2;
    const deflated = deflatedSharpe(returns, sharpes, 252)!;
    expect(deflated.trials).toBe(6);
    expect(deflated.expected_max_sharpe).toBeCloseTo(expectedMaxSharpe(6, variance), 12);
    expect(deflated.probability).toBeGreaterThan(0.5);
    expect(deflated.probability).toBeLessThan(0.96005972);
    const more = deflatedSharpe(returns, [...sharpes, ...sharpes, ...sharpes], 252)!;
    expect(more.probability).toBeLessThan(deflated.probability);
  });

  it('is the same to the last digit for any order of the trials', () => {
    const sharpes = Array.from({ length: 50 }, (_, i) => Math.sin(i * i) / 3);
    const shuffled = sharpes.toSorted((a, b) => Math.sin(a * 1e6) - Math.sin(b * 1e6));
    expect(momentsOf(Float64Array.from(shuffled)).deviation).not.toBe(
      momentsOf(Float64Array.from(sharpes)).deviation,
    );
    expect(deflatedSharpe(returns, shuffled, 252)).toEqual(deflatedSharpe(returns, sharpes, 252));
  });

  it('is undefined for too few returns or ratios', () => {
    expect(deflatedSharpe(returns, [1.2, null], 252)).toBeUndefined();
    expect(deflatedSharpe(returns.slice(0, 3), [1.2, 0.8], 252)).toBeUndefined();
    expect(deflatedSharpe(new Float64Array(10), [1.2, 0.8], 252)).toBeUndefined();
    // Bias-adjusted moments of four returns in two clusters give the ratio a negative variance.
    const clusters = Float64Array.of(0.1, 0.1, 0.11, 0.11);
    expect(deflatedSharpe(clusters, [1.2, 0.8], 252)).toBeUndefined();
    expect(deflatedSharpe(Float64Array.of(0, 0, 0, 1e-9, 0), [1.2, 0.8], 252)).toBeDefined();
  });
});
