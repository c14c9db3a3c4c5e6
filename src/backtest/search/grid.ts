import { ServiceError } from '../../base/errors.ts';
import { formatCount } from '../../base/format.ts';
import type { Params, ParamValues } from '../../engine/params.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { faultOf, MAX_TRIALS, type Axis, type ListAxis, type ParamValue } from './axes.ts';
import { SkippedCombinations } from './skipped-combinations.ts';
import type { TrialSource } from './trial-source.ts';
import type { Trial } from './trial.ts';

/**
 * The valid combinations of a sweep, numbered from 0; the last axis varies fastest. A trial is made when
 * it is needed, since there may be a million.
 */
export class Grid implements TrialSource {
  readonly #base: ParamValues<Params>;
  readonly #axes: readonly ListAxis[];
  /** For each trial, the index of its combination among all combinations. */
  readonly #valid: Uint32Array;
  readonly skipped = new SkippedCombinations();
  #isStarted = false;

  constructor(base: ParamValues<Params>, axes: readonly ListAxis[], strategy: Strategy) {
    this.#base = base;
    this.#axes = axes;
    const faults = new Map(
      axes.map(({ name, values }) => [
        name,
        new Map(values.map((value) => [value, faultOf(name, strategy.params[name]!, value)])),
      ]),
    );
    const faultIn = (params: ParamValues<Params>): string | undefined => {
      for (const { name } of axes) {
        const fault = faults.get(name)!.get(params[name]!);
        if (fault !== undefined) return `${name} ${fault}`;
      }
      return strategy.check?.(params);
    };
    const valid = new Uint32Array(sizeOf(axes));
    let count = 0;
    for (let combination = 0; combination < valid.length; combination++) {
      const fault = faultIn(this.#params(combination));
      if (fault === undefined) valid[count++] = combination;
      else this.skipped.add(fault);
    }
    this.#valid = valid.slice(0, count);
  }

  get count(): number {
    return this.#valid.length;
  }

  get capacity(): number {
    return this.#valid.length;
  }

  get batchSize(): number {
    return this.capacity;
  }

  trial(index: number): Trial {
    return { index, params: this.#params(this.#valid[index]!) };
  }

  /** All trials are one generation. */
  nextGeneration(): Uint32Array {
    const size = this.#isStarted ? 0 : this.count;
    this.#isStarted = true;
    return Uint32Array.from({ length: size }, (_, index) => index);
  }

  #params(combination: number): ParamValues<Params> {
    const chosen: Record<string, ParamValue> = {};
    let rest = combination;
    for (const { name, values } of this.#axes.toReversed()) {
      chosen[name] = values[rest % values.length]!;
      rest = Math.floor(rest / values.length);
    }
    const params: Record<string, ParamValue> = { ...this.#base };
    for (const { name } of this.#axes) params[name] = chosen[name]!;
    return params;
  }
}

const sizeOf = (axes: readonly ListAxis[]): number =>
  axes.reduce((product, { values }) => product * values.length, 1);

/**
 * Returns the valid combinations of the axes over `base`.
 *
 * @throws ServiceError `usage` for a range without step, too many trials, or if no combination is valid
 */
export function gridOf(strategy: Strategy, base: ParamValues<Params>, axes: readonly Axis[]): Grid {
  const lists = axes.map((axis) => {
    if ('values' in axis) return axis;
    throw new ServiceError('usage', `a grid needs a step for ${axis.name}`, {
      remedy: `Write ${axis.name}=${axis.from}:${axis.to}:STEP, or choose a random or TPE search.`,
    });
  });
  const total = sizeOf(lists);
  if (total > MAX_TRIALS) {
    throw new ServiceError(
      'usage',
      `${formatCount(total)} combinations; at most ${formatCount(MAX_TRIALS)} are allowed`,
      {
        remedy: 'Take larger steps, or sweep fewer parameters at once.',
      },
    );
  }
  const grid = new Grid(base, lists, strategy);
  if (grid.count === 0) {
    throw new ServiceError('usage', `no combination is valid: ${grid.skipped.reasons[0]!.reason}`, {
      remedy: 'Choose ranges in which some combinations are valid.',
    });
  }
  return grid;
}
