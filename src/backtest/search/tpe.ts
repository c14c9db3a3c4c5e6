import type { ParamValue } from './axes.ts';
import type { AxisPositions, Cell } from './axis-positions.ts';
import { middleOf, ParzenDensity } from './parzen.ts';

type Point = readonly ParamValue[];

/** Values that are drawn before the best of them is proposed. */
const CANDIDATES = 24;

/**
 * Tree-structured Parzen estimator: proposes for each parameter the candidate whose probability among
 * the good trials is highest in relation to that among the others. J. Bergstra et al., "Algorithms for
 * Hyper-Parameter Optimization", NIPS 24, 2011; J. Bergstra, D. Yamins and D. Cox, "Making a Science of
 * Model Search", ICML 2013.
 *
 * Values without an order are drawn as often as the good trials have them, each counted once more: the
 * best of several candidates would always be the same value, which early luck can choose.
 *
 * @param good values of the good trials, in the order of the axes
 * @returns a function that draws a proposal
 */
export function fitTpe(
  axes: readonly AxisPositions[],
  good: readonly Point[],
  others: readonly Point[],
): (random: () => number) => Point {
  const draws = axes.map((axis, k) => {
    const cellsOf = (points: readonly Point[]): Cell[] =>
      points.map((values) => axis.cell(values[k]!));
    return axis.isOrdered
      ? fitNumbers(axis, cellsOf(good), cellsOf(others))
      : fitCategories(axis, cellsOf(good));
  });
  return (random) => draws.map((draw) => draw(random));
}

type Draw = (random: () => number) => ParamValue;

function fitNumbers(axis: AxisPositions, good: readonly Cell[], others: readonly Cell[]): Draw {
  const isGood = new ParzenDensity(good);
  const isOther = new ParzenDensity(others);
  return (random) => {
    let best = { value: axis.value(0), ratio: -Infinity };
    for (let i = 0; i < CANDIDATES; i++) {
      const value = axis.value(isGood.draw(random));
      const position = middleOf(axis.cell(value));
      const ratio = isGood.at(position) / isOther.at(position);
      if (ratio > best.ratio) best = { value, ratio };
    }
    return best.value;
  };
}

function fitCategories(axis: AxisPositions, good: readonly Cell[]): Draw {
  return (random) => {
    const place = Math.floor(random() * (good.length + axis.size));
    const known = good[place];
    return axis.value(
      known === undefined ? (place - good.length + 0.5) / axis.size : middleOf(known),
    );
  };
}
