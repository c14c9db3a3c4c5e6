import { describe, expect, it } from 'vitest';
import { BlockSums, blockSumsOf } from '../../../src/backtest/robustness/block-sums.ts';
import { overfittingOf } from '../../../src/backtest/robustness/overfitting.ts';
import { normals } from './noise.ts';

type Matrix = readonly (readonly number[])[];

/** The result for a matrix of returns with a row per trial. */
async function overfittingIn(matrix: Matrix, count: number) {
  const blocks = { count, returns: matrix[0]!.length };
  const sums = new BlockSums(blocks, matrix.length);
  matrix.forEach((row, trial) => sums.set(trial, blockSumsOf(Float64Array.from(row), blocks)));
  return overfittingOf(sums, Uint32Array.from(matrix.keys()), 252);
}

function sharpeOf(returns: readonly number[]): number {
  const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
  const squares = returns.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return squares < 1e-20 ? 0 : mean / Math.sqrt(squares / (returns.length - 1));
}

function combinationsOf(count: number, size: number): number[][] {
  const all = Array.from({ length: 2 ** count }, (_, mask) =>
    Array.from({ length: count }, (_none, bit) => bit).filter((bit) => (mask >> bit) & 1),
  );
  return all.filter(({ length }) => length === size);
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** The definition: every half from the full matrix, with plain loops. */
function bruteForce(matrix: Matrix, blocks: number) {
  const n = matrix[0]!.length;
  const part = (row: readonly number[], chosen: readonly number[]): number[] =>
    chosen.flatMap((b) =>
      row.slice(Math.floor((b * n) / blocks), Math.floor(((b + 1) * n) / blocks)),
    );
  const all = Array.from({ length: blocks }, (_, block) => block);
  const pairs: [number, number][] = [];
  const logits = combinationsOf(blocks, blocks / 2).map((chosen) => {
    const others = all.filter((block) => !chosen.includes(block));
    const inside = matrix.map((row) => sharpeOf(part(row, chosen)));
    const outside = matrix.map((row) => sharpeOf(part(row, others)));
    const top = Math.max(...inside);
    const own = outside[inside.findIndex((value) => value > top - 1e-12)]!;
    pairs.push([top, own]);
    const below = outside.filter((value) => value < own - 1e-12).length;
    const same = outside.filter((value) => Math.abs(value - own) <= 1e-12).length;
    const relative = (below + (same + 1) / 2) / (matrix.length + 1);
    return Math.log(relative / (1 - relative));
  });
  const [x, y] = [meanOf(pairs.map(([a]) => a)), meanOf(pairs.map(([, b]) => b))];
  const slope =
    meanOf(pairs.map(([a, b]) => (a - x) * (b - y))) / meanOf(pairs.map(([a]) => (a - x) ** 2));
  return {
    logits,
    pbo: meanOf(logits.map((logit) => (logit <= 0 ? 1 : 0))),
    loss: meanOf(pairs.map(([, own]) => (own < 0 ? 1 : 0))),
    slope,
    intercept: y - slope * x,
  };
}

/** Independent trials, of which the first one has this mean return. */
function noise(trials: number, returns: number, seed: number, mean = 0): number[][] {
  const normal = normals(seed);
  return Array.from({ length: trials }, (_, trial) =>
    Array.from({ length: returns }, () => normal() * 0.01 + (trial === 0 ? mean : 0)),
  );
}

describe('the probability of overfitting', () => {
  const idle = Array<number>(36).fill(0);
  it.each<[string, number, Matrix]>([
    ['noise', 8, noise(7, 64, 1)],
    ['blocks of unequal length', 6, noise(5, 47, 2)],
    ['a trial with an edge', 8, noise(9, 80, 3, 0.005)],
    ['equal and idle trials', 6, [...noise(3, 36, 4), ...noise(3, 36, 4), idle, idle]],
  ])('equals the definition for %s', async (_, blocks, matrix) => {
    const found = await overfittingIn(matrix, blocks);
    const expected = bruteForce(matrix, blocks);
    expect(found.logits).toHaveLength(expected.logits.length);
    found.logits.forEach((logit, half) => expect(logit).toBeCloseTo(expected.logits[half]!, 9));
    expect(found.pbo).toBeCloseTo(expected.pbo, 12);
    expect(found.probability_of_loss).toBeCloseTo(expected.loss, 12);
    expect(found.degradation!.slope).toBeCloseTo(expected.slope, 9);
    expect(found.degradation!.intercept).toBeCloseTo(expected.intercept * Math.sqrt(252), 9);
  });

  it('is about one half for noise, and small for a trial with an edge', async () => {
    let sum = 0;
    for (let seed = 0; seed < 40; seed++) {
      sum += (await overfittingIn(noise(10, 240, 100 + seed), 8)).pbo;
    }
    expect(sum / 40).toBeGreaterThan(0.4);
    expect(sum / 40).toBeLessThan(0.6);
    const edge = await overfittingIn(noise(10, 1000, 5, 0.002), 16);
    expect(edge.pbo).toBeLessThan(0.02);
    expect(edge.probability_of_loss).toBeLessThan(0.02);
  });

  it('counts the returns after the loss of an account as 0', () => {
    const row = blockSumsOf(Float64Array.of(1, 2, 3), { count: 2, returns: 8 });
    expect([...row]).toEqual([6, 0, 14, 0]);
  });
});
