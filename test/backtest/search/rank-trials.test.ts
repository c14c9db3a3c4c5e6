import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Goal } from '../../../src/backtest/search/goal.ts';
import { rankTrials } from '../../../src/backtest/search/rank-trials.ts';

type Row = readonly [number, number, number];

const FIGURES = ['sharpe', 'max_drawdown', 'fees'] as const;

const goalOf = (count: number): Goal => ({
  objectives: [
    { figure: 'sharpe', better: 'higher' },
    ...(count > 1 ? [{ figure: 'max_drawdown', better: 'higher' } as const] : []),
    ...(count > 2 ? [{ figure: 'fees', better: 'lower' } as const] : []),
  ],
  constraints: [],
});

/** Removes one front after another by comparing all pairs. */
function peeledFronts(rows: readonly Row[], count: number): number[] {
  const fronts = rows.map(() => -1);
  const score = (row: Row, k: number): number => {
    const figure = row[k]!;
    if (Number.isNaN(figure)) return -Infinity;
    return k === 2 ? -figure : figure;
  };
  const dominates = (a: Row, b: Row): boolean => {
    const pairs = Array.from({ length: count }, (_, k) => [score(a, k), score(b, k)] as const);
    return pairs.every(([x, y]) => x >= y) && pairs.some(([x, y]) => x > y);
  };
  for (let front = 0; fronts.includes(-1); front++) {
    const left = rows.flatMap((_, i) => (fronts[i] === -1 ? [i] : []));
    const best = left.filter((i) => !left.some((j) => dominates(rows[j]!, rows[i]!)));
    for (const i of best) fronts[i] = front;
  }
  return fronts;
}

const value = fc.constantFrom(0, 1, 2, 3, 4, Number.NaN);

test.each([1, 2, 3])('fronts of %i objectives are those found by comparing all pairs', (count) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(value, value, value), { maxLength: 40 }), (rows) => {
      const indices = Uint32Array.from(rows, (_, index) => index);
      const { order, fronts } = rankTrials(
        indices,
        (index, name) => rows[index]![FIGURES.indexOf(name as 'fees')]!,
        goalOf(count),
      );
      const found: number[] = [];
      order.forEach((index, place) => (found[index] = fronts[place]!));
      expect(found).toEqual(peeledFronts(rows, count));
      expect([...fronts]).toEqual([...fronts].toSorted((a, b) => a - b));
    }),
  );
});

test('trials that violate a constraint follow the others, the smallest violation first', () => {
  const trades = [5, 40, 20, Number.NaN, 35];
  const goal: Goal = {
    ...goalOf(1),
    constraints: [{ name: 'trades', op: '>=', threshold: 30 }],
  };
  const { order } = rankTrials(
    Uint32Array.from(trades, (_, index) => index),
    (index, name) => (name === 'trades' ? trades[index]! : -index),
    goal,
  );
  expect([...order]).toEqual([1, 4, 2, 0, 3]);
});
