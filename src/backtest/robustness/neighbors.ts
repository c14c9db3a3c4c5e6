import { resolveParams, type Param, type Params, type ParamValues } from '../../engine/params.ts';
import type { Strategy } from '../../engine/strategy.ts';
import type { Axis } from '../search/axes.ts';

/** The chosen parameters with one of them changed by a step. */
export interface Neighbor {
  readonly name: string;
  readonly value: number | string | boolean;
  readonly params: ParamValues<Params>;
}

/** Step of a number that is not swept, as a share of it. */
const STEP = 0.1;

/**
 * Returns valid combinations that differ in one parameter: the adjacent values of a swept one, and ±10 %
 * of another number, or ±1 of a small integer.
 */
export function neighborsOf(
  strategy: Strategy,
  chosen: ParamValues<Params>,
  axes: readonly Axis[],
): Neighbor[] {
  return Object.entries(strategy.params).flatMap(([name, param]) => {
    const axis = axes.find((one) => one.name === name);
    const values =
      axis !== undefined && 'values' in axis && axis.values.length > 1
        ? adjacentValues(axis.values, chosen[name]!)
        : nearbyNumbers(param, chosen[name]!);
    return values
      .map((value) => ({ name, value, params: { ...chosen, [name]: value } }))
      .filter(({ params }) => isValid(strategy, params));
  });
}

function adjacentValues<T extends Neighbor['value']>(values: readonly T[], value: T): T[] {
  const ordered = values.toSorted((a, b) =>
    typeof a === 'number' && typeof b === 'number' ? a - b : 0,
  );
  const at = ordered.indexOf(value);
  return ordered.filter((_, i) => Math.abs(i - at) === 1);
}

function nearbyNumbers({ kind }: Param, value: Neighbor['value']): number[] {
  if (typeof value !== 'number') return [];
  const step = Math.abs(value) * STEP;
  const rounded = kind === 'integer' ? Math.max(1, Math.round(step)) : step;
  return rounded === 0
    ? []
    : [value - rounded, value + rounded].map((one) => Number(one.toPrecision(12)));
}

function isValid(strategy: Strategy, params: ParamValues<Params>): boolean {
  const { problems } = resolveParams(strategy.params, params);
  return problems.length === 0 && strategy.check?.(params) === undefined;
}
