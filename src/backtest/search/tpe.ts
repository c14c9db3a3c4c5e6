import type { ParamValue } from './axes.ts';
import type { AxisPositions, Cell } from './axis-positions.ts';
import { ParzenDensity } from './parzen.ts';

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
 */
export function proposeByTpe(
  axes: readonly AxisPositions[],
  good: readonly Point[],
  others: readonly Point[],
  random: () => number,
): ParamValue[] {
  return axes.map((axis, k) => {
    const cellsOf = (points: readonly Point[]): Cell[] =>
      points.map((values) => axis.cell(values[k]!));
    if (!axis.isOrdered) return drawCategory(axis, cellsOf(good), random);
    const isGood = new ParzenDensity(cellsOf(good));
    const isOther = new ParzenDensity(cellsOf(others));
    let best = { value: axis.value(0), ratio: -Infinity };
    for (let i = 0; i < CANDIDATES; i++) {
      const value = axis.value(isGood.draw(random));
      const cell = axis.cell(value);
      const ratio = isGood.weight(cell) / isOther.weight(cell);
      if (ratio > best.ratio) best = { value, ratio };
    }
    return best.value;
  });
}

function drawCategory(
  axis: AxisPositions,
  observed: readonly Cell[],
  random: () => number,
): ParamValue {
  const place = Math.floor(random() * (observed.length + axis.size));
  const known = observed[place];
  return axis.value(
    known === undefined ? (place - observed.length + 0.5) / axis.size : middle(known),
  );
}

const middle = ({ from, to }: Cell): number => (from + to) / 2;
