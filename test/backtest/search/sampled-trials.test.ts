import { expect, test } from 'vitest';
import { HIGHEST_SHARPE, type Goal } from '../../../src/backtest/search/goal.ts';
import { plantedSharpe, search, strategy } from './planted-optimum.ts';
import { isAtLength } from '../../length.ts';

const SEEDS = Array.from({ length: 10 }, (_, seed) => seed);

function bestOf(kind: 'random' | 'tpe', seed: number): number {
  const options = { kind, trials: 96, seed, goal: HIGHEST_SHARPE };
  const { results } = search(options, (params) => ({ sharpe: plantedSharpe(params) }));
  return results.best(HIGHEST_SHARPE)!.metrics.sharpe!;
}

test.runIf(isAtLength)(
  'tpe finds a planted optimum more closely than random search with the same seeds',
  () => {
    const found = SEEDS.map((seed) => bestOf('tpe', seed));
    const wins = SEEDS.filter((seed) => found[seed]! > bestOf('random', seed));
    expect(wins.length).toBeGreaterThanOrEqual(9);
    expect(found.toSorted((a, b) => a - b)[5]).toBeGreaterThan(-0.005);
  },
);

test('the same seed gives the same trials, and another seed others', () => {
  const paramsOf = (seed: number) => {
    const options = { kind: 'tpe', trials: 40, seed, goal: HIGHEST_SHARPE } as const;
    const { trials } = search(options, (params) => ({ sharpe: plantedSharpe(params) }));
    return Array.from({ length: trials.count }, (_, index) => trials.trial(index).params);
  };
  expect(paramsOf(1)).toEqual(paramsOf(1));
  expect(paramsOf(1)).not.toEqual(paramsOf(2));
});

test.each(['random', 'tpe'] as const)('%s proposes valid combinations, each once', (kind) => {
  const options = { kind, trials: 100, seed: 3, goal: HIGHEST_SHARPE };
  const { trials } = search(options, (params) => ({ sharpe: plantedSharpe(params) }));
  const all = Array.from({ length: trials.count }, (_, index) => trials.trial(index).params);
  expect(new Set(all.map((params) => JSON.stringify(params))).size).toBe(100);
  for (const params of all) {
    expect(strategy.check!(params as never)).toBeUndefined();
    expect(Number.isInteger(params['length'])).toBe(true);
    expect(params['length']).toBeGreaterThanOrEqual(1);
    expect(params['length']).toBeLessThanOrEqual(300);
    expect(params['scale']).toBeGreaterThanOrEqual(0.001);
    expect(params['scale']).toBeLessThanOrEqual(10);
  }
  expect(trials.skipped.reasons.map(({ reason }) => reason)).toEqual([
    'scale must be at most 1% of length',
  ]);
});

/** Maximizing both is impossible: they add up to at most 1, on a ridge of the other parameters. */
const TWO: Goal = {
  objectives: [
    { figure: 'sharpe', better: 'higher' },
    { figure: 'volatility', better: 'lower' },
  ],
  constraints: [{ name: 'trades', op: '>=', threshold: 100 }],
};

test('the Pareto front of a search for two objectives is not dominated, and meets the constraint', () => {
  const options = { kind: 'tpe', trials: 128, seed: 5, goal: TWO } as const;
  const { results } = search(options, ({ length, scale }) => {
    const ridge = Math.abs(Math.log(scale / 0.02)) / 10;
    return { sharpe: length / 300 - ridge, volatility: length / 300 + ridge, trades: length };
  });
  const ranked = results.take(results.ranking(TWO), 128);
  const front = ranked.filter((trial) => trial.front === 0);
  expect(front.length).toBeGreaterThan(3);
  expect(front.length).toBeLessThan(ranked.length);
  for (const { metrics } of ranked) expect(metrics.trades).toBeGreaterThanOrEqual(100);
  for (const { metrics: one } of front) {
    const dominating = ranked.filter(
      ({ metrics: other }) =>
        other.sharpe! >= one.sharpe! &&
        other.volatility! <= one.volatility! &&
        (other.sharpe! > one.sharpe! || other.volatility! < one.volatility!),
    );
    expect(dominating).toEqual([]);
  }
});
