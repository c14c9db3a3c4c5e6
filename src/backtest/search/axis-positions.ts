import type { Axis, ParamValue, RangeAxis } from './axes.ts';

/** An axis as positions between 0 and 1. */
export interface AxisPositions {
  /** False for a list of texts or booleans, which have no order. */
  readonly isOrdered: boolean;
  /** Number of values of a list; infinite for a range. */
  readonly size: number;
  /** The value at a position, which is below 1. */
  value(position: number): ParamValue;
  /** The positions that have a value, `from ≤ position < to`; a single one on a continuous axis. */
  cell(value: ParamValue): Cell;
}

export interface Cell {
  readonly from: number;
  readonly to: number;
}

export function positionsOf(axis: Axis): AxisPositions {
  return 'values' in axis ? listPositions(axis.values) : rangePositions(axis);
}

/** Lists of numbers are sorted. */
function listPositions(given: readonly ParamValue[]): AxisPositions {
  const isOrdered = given.every((value) => typeof value === 'number');
  const values = isOrdered ? [...new Set(given)].toSorted((a, b) => a - b) : given;
  const places = new Map(values.map((value, place) => [value, place]));
  return {
    isOrdered,
    size: values.length,
    value: (position) => values[Math.floor(position * values.length)]!,
    cell(value) {
      const place = places.get(value)!;
      return { from: place / values.length, to: (place + 1) / values.length };
    },
  };
}

/** Digits of a number of a continuous axis. */
const DIGITS = 6;

function rangePositions({ kind, from, to, scale }: RangeAxis): AxisPositions {
  const [transform, invert] =
    scale === 'log' ? [Math.log, Math.exp] : [(x: number) => x, (x: number) => x];
  // Each whole number has the cell from a half below it to a half above it.
  const margin = kind === 'integer' ? 0.5 : 0;
  const low = transform(from - margin);
  const width = transform(to + margin) - low;
  const within = (value: number): number => Math.min(to, Math.max(from, value));
  const positionOf = (value: number): number =>
    width === 0 ? 0 : (transform(value) - low) / width;
  return {
    isOrdered: true,
    size: Infinity,
    value(position) {
      const exact = invert(low + position * width);
      return within(kind === 'integer' ? Math.round(exact) : Number(exact.toPrecision(DIGITS)));
    },
    cell(value) {
      const number = value as number;
      return { from: positionOf(number - margin), to: positionOf(number + margin) };
    },
  };
}
