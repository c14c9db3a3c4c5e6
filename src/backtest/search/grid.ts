import { closest } from '../../base/closest.ts';
import { paramFromText, resolveParams } from '../../engine/params.ts';
import type { Params, ParamValues } from '../../engine/params.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Trial } from './trial.ts';

/** A swept parameter and the texts of its values, as given by the user. */
export interface AxisText {
  readonly name: string;
  readonly texts: readonly string[];
}

export interface Axis {
  readonly name: string;
  readonly values: readonly (number | string | boolean)[];
}

/** More trials are probably a mistake in a range. */
const MAX_TRIALS = 2_000_000;

/**
 * Parses `fast=5:50:5` (from, to, step; both ends inclusive), `fast=5,10,20` or `fast=10`. Repeated
 * values count once.
 *
 * @throws ServiceError `usage`
 */
export function parseAxis(text: string): AxisText {
  const refuse = (what: string): never => {
    throw new ServiceError('usage', `parameter ${JSON.stringify(text)}: ${what}`, {
      remedy: 'Write NAME=VALUE, NAME=A,B,C or NAME=FROM:TO:STEP.',
    });
  };
  const [, name, given] = /^([A-Za-z_]\w*)=(.+)$/.exec(text) ?? [];
  if (name === undefined || given === undefined) return refuse('not of the form NAME=VALUES');
  if (!given.includes(':')) return { name, texts: [...new Set(given.split(','))] };

  const [from, to, step, ...more] = given.split(':').map(Number);
  if (from === undefined || to === undefined || step === undefined || more.length > 0) {
    return refuse('a range must be FROM:TO:STEP');
  }
  if (![from, to, step].every(Number.isFinite))
    return refuse('FROM, TO and STEP of a range must be numbers');
  if (step <= 0 || to < from) return refuse('STEP must be greater than 0, and FROM at most TO');
  // The tolerance includes the last value if rounding errors of the steps exceed it slightly.
  const count = Math.floor((to - from) / step + 1e-9) + 1;
  if (count > MAX_TRIALS) return refuse(`${count} values; at most ${MAX_TRIALS} are allowed`);
  const valueAt = (i: number): string => String(Number((from + i * step).toPrecision(12)));
  return { name, texts: Array.from({ length: count }, (_, i) => valueAt(i)) };
}

/**
 * Parses the values as the strategy declares its parameters.
 *
 * @throws ServiceError `usage` for an unknown or repeated parameter, or an invalid value
 */
export function axesOf(strategy: Strategy, given: readonly AxisText[]): Axis[] {
  return given.map(({ name, texts }) => {
    if (given.filter((axis) => axis.name === name).length > 1) {
      throw new ServiceError('usage', `parameter ${name} is given twice`, {
        remedy: `Write all its values in one place: ${name}=A,B,C.`,
      });
    }
    const values = texts.map((text) => paramFromText(strategy.params[name], text));
    checkAxis(strategy, name, values);
    return { name, values };
  });
}

/**
 * The valid combinations of a sweep, numbered from 0; the last axis varies fastest. A trial is made when
 * it is needed, since there may be a million.
 */
export class Grid {
  readonly #base: ParamValues<Params>;
  readonly #axes: readonly Axis[];
  /** For each trial, the index of its combination among all combinations. */
  readonly #valid: Uint32Array;
  /** Number of combinations that the strategy's own `check` rejects, such as fast ≥ slow. */
  readonly skipped: number;

  constructor(base: ParamValues<Params>, axes: readonly Axis[], strategy: Strategy) {
    this.#base = base;
    this.#axes = axes;
    const total = axes.reduce((product, { values }) => product * values.length, 1);
    const valid = new Uint32Array(total);
    let count = 0;
    for (let combination = 0; combination < total; combination++) {
      valid[count] = combination;
      if (strategy.check?.(this.#params(combination)) === undefined) count++;
    }
    this.#valid = valid.slice(0, count);
    this.skipped = total - count;
  }

  get count(): number {
    return this.#valid.length;
  }

  trial(index: number): Trial {
    return { index, params: this.#params(this.#valid[index]!) };
  }

  #params(combination: number): ParamValues<Params> {
    const chosen: Record<string, Axis['values'][number]> = {};
    let rest = combination;
    for (const { name, values } of this.#axes.toReversed()) {
      chosen[name] = values[rest % values.length]!;
      rest = Math.floor(rest / values.length);
    }
    const params: Record<string, Axis['values'][number]> = { ...this.#base };
    for (const { name } of this.#axes) params[name] = chosen[name]!;
    return params;
  }
}

/**
 * Returns the valid combinations of the axes over `base`.
 *
 * @throws ServiceError `usage` for too many trials, or if no combination is valid
 */
export function gridOf(strategy: Strategy, base: ParamValues<Params>, axes: readonly Axis[]): Grid {
  const total = axes.reduce((product, { values }) => product * values.length, 1);
  if (total > MAX_TRIALS) {
    throw new ServiceError('usage', `${total} combinations; at most ${MAX_TRIALS} are allowed`, {
      remedy: 'Take larger steps, or sweep fewer parameters at once.',
    });
  }
  const grid = new Grid(base, axes, strategy);
  if (grid.count === 0) {
    const first = axes.map(({ name, values }) => [name, values[0]]);
    const reason = strategy.check?.({ ...base, ...Object.fromEntries(first) });
    throw new ServiceError('usage', `no combination is valid: ${reason}`, {
      remedy: 'Choose ranges in which some combinations are valid.',
    });
  }
  return grid;
}

function checkAxis({ name: strategy, params }: Strategy, name: string, values: Axis['values']) {
  if (!Object.hasOwn(params, name)) {
    const near = closest(name, Object.keys(params));
    throw new ServiceError('usage', `strategy ${strategy} has no parameter ${name}`, {
      remedy:
        near === undefined
          ? `Its parameters are: ${Object.keys(params).join(', ') || 'none'}.`
          : `Did you mean ${near}?`,
    });
  }
  for (const value of values) {
    const problem = resolveParams({ [name]: params[name]! }, { [name]: value }).problems[0];
    if (problem !== undefined) {
      throw new ServiceError('usage', `parameter ${name} ${problem.message}`, {
        remedy: `Change the values of ${name}.`,
      });
    }
  }
}
