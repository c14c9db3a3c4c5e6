import { expect, test } from 'vitest';
import { combinationsOf } from '../../src/research/sweep-trials.ts';

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

test('a grid lists every combination once, the last parameter fastest', () => {
  expect(combinationsOf({ fast: [5, 10, 5], slow: [20, 30] }, undefined)).toEqual([
    { fast: 5, slow: 20 },
    { fast: 5, slow: 30 },
    { fast: 10, slow: 20 },
    { fast: 10, slow: 30 },
  ]);
});

test('a sample of a large grid has different combinations, and depends only on its seed', () => {
  const grid = { fast: upTo(1000), slow: upTo(1000), hold: upTo(1000) };
  const sample = combinationsOf(grid, { trials: 50, seed: 1 });
  expect(new Set(sample.map((params) => JSON.stringify(params))).size).toBe(50);
  expect(combinationsOf(grid, { trials: 50, seed: 1 })).toEqual(sample);
  expect(combinationsOf(grid, { trials: 50, seed: 2 })).not.toEqual(sample);
  for (const name of ['fast', 'slow', 'hold']) {
    const values = sample.map((params) => Number(params[name]));
    // The mean of 50 uniform values has a standard deviation of 41.
    expect(Math.abs(values.reduce((sum, value) => sum + value, 0) / 50 - 500)).toBeLessThan(165);
  }
});

test('a sample as large as its grid is the grid', () => {
  const grid = { fast: [5, 10], slow: [20, 30] };
  expect(combinationsOf(grid, { trials: 50, seed: 1 })).toEqual(combinationsOf(grid, undefined));
});
