import { holds } from '../assertion.ts';
import type { Constraint, Goal } from './goal.ts';
import type { TrialFigureName } from './trial-figures.ts';

/** A figure of a trial, NaN if it is undefined. */
export type FigureOf = (index: number, figure: TrialFigureName) => number;

export interface Ranking {
  /** Trials in order of front, then of the objectives as they are given, then of index. */
  readonly order: Uint32Array;
  /** Front of each trial of `order`; 0 is the best one. */
  readonly fronts: Uint32Array;
}

/**
 * Ranks trials by non-domination. A trial dominates another if it is at least as good in every objective
 * and better in one. The first front contains the trials that no other dominates, the second front those
 * that only trials of the first dominate, and so on. With one objective, the trials of a front are equal.
 * Trials that violate constraints follow the others by the size of the violation (K. Deb et al., "A Fast
 * and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE Trans. Evolutionary Computation 6(2),
 * 2002, VI). An undefined figure is the worst.
 */
export function rankTrials(indices: Uint32Array, figureOf: FigureOf, goal: Goal): Ranking {
  const { objectives, constraints } = goal;
  const width = objectives.length;
  const values = scoresOf(indices, figureOf, goal);
  const violations = Float64Array.from(indices, (index) =>
    constraints.reduce((sum, one) => sum + violationOf(one, figureOf(index, one.name)), 0),
  );
  /** Positive if the first of two places in `indices` is worse in the first objective that differs. */
  const compare = (a: number, b: number): number => {
    for (let k = 0; k < width; k++) {
      const [one, other] = [values[a * width + k]!, values[b * width + k]!];
      if (one !== other) return one < other ? 1 : -1;
    }
    return 0;
  };
  const places = Uint32Array.from(indices, (_, place) => place).sort(
    (a, b) => violations[a]! - violations[b]! || compare(a, b) || indices[a]! - indices[b]!,
  );

  // Efficient non-dominated sort with binary search: X. Zhang et al., "An Efficient Approach to
  // Nondominated Sorting for Evolutionary Multiobjective Optimization", IEEE TEVC 19(2), 2015. In this
  // order, a trial can only be dominated by an earlier one.
  const frontOf = new Uint32Array(indices.length);
  /** Latest member of each front, and for each trial the member before it. */
  const latest: number[] = [];
  const before = new Int32Array(indices.length).fill(-1);
  const isDominated = (place: number, front: number): boolean => {
    for (let member = latest[front]!; member >= 0; member = before[member]!) {
      if (dominates(member, place)) return true;
      // With two objectives, the latest member has the best second one.
      if (width <= 2) return false;
    }
    return false;
  };
  const dominates = (a: number, b: number): boolean => {
    if (violations[a] !== violations[b]) return true;
    if (violations[a]! > 0 || compare(a, b) === 0) return false;
    for (let k = 0; k < width; k++) {
      if (values[a * width + k]! < values[b * width + k]!) return false;
    }
    return true;
  };
  for (const place of places) {
    let [low, high] = [0, latest.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isDominated(place, middle)) low = middle + 1;
      else high = middle;
    }
    frontOf[place] = low;
    before[place] = latest[low] ?? -1;
    latest[low] = place;
  }
  // The sort is stable, so trials of a front keep their order.
  places.sort((a, b) => frontOf[a]! - frontOf[b]!);
  return {
    order: places.map((place) => indices[place]!),
    fronts: places.map((place) => frontOf[place]!),
  };
}

/** A row of objectives for each trial, negated if lower is better. */
export function scoresOf(
  indices: Uint32Array,
  figureOf: FigureOf,
  { objectives }: Pick<Goal, 'objectives'>,
): Float64Array {
  const scores = new Float64Array(indices.length * objectives.length);
  indices.forEach((index, place) => {
    objectives.forEach(({ figure, better }, k) => {
      const value = figureOf(index, figure);
      const score = better === 'higher' ? value : -value;
      scores[place * objectives.length + k] = Number.isNaN(value) ? -Infinity : score;
    });
  });
  return scores;
}

/** Distance to the threshold as a share of it; 0 if the constraint is met. */
function violationOf(constraint: Constraint, value: number): number {
  if (Number.isNaN(value)) return Infinity;
  if (holds(value, constraint)) return 0;
  const { threshold } = constraint;
  return Math.max(Number.MIN_VALUE, Math.abs(value - threshold) / (Math.abs(threshold) || 1));
}

export function meets(constraints: readonly Constraint[], index: number, figureOf: FigureOf) {
  return constraints.every((one) => holds(figureOf(index, one.name), one));
}
