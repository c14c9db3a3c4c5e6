import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatCount } from '../../base/format.ts';
import { paramFromText, resolveParams, type Param } from '../../engine/params.ts';
import type { Strategy } from '../../engine/strategy.ts';

export type ParamValue = number | string | boolean;

/** A swept parameter as given by the user; without `texts` and `range`, its declared range. */
export interface AxisText {
  readonly name: string;
  /** The texts of its values. */
  readonly texts?: readonly string[];
  readonly range?: { readonly from: number; readonly to: number; readonly scale: Scale };
}

type Scale = 'linear' | 'log';

export interface ListAxis {
  readonly name: string;
  readonly values: readonly ParamValue[];
}

/** All numbers between two bounds, both included. */
export interface RangeAxis {
  readonly name: string;
  readonly kind: 'integer' | 'number';
  readonly from: number;
  readonly to: number;
  readonly scale: Scale;
}

export type Axis = ListAxis | RangeAxis;

/** More trials are probably a mistake in a range. */
export const MAX_TRIALS = 2_000_000;

/**
 * Parses `fast=5:50:5` (from, to, step; both ends inclusive), `fast=5:50`, `fast=5:500:log`,
 * `fast=5,10,20`, `fast=10` or `fast`.
 *
 * @throws ServiceError `usage`
 */
export function parseAxis(text: string): AxisText {
  const [, name, , given] = /^([A-Za-z_]\w*)(=(.+))?$/.exec(text) ?? [];
  if (name === undefined) {
    throw new ServiceError(
      'usage',
      `parameter ${JSON.stringify(text)}: not of the form NAME=VALUES`,
      {
        remedy:
          'Write NAME=VALUE, NAME=A,B,C, NAME=FROM:TO:STEP, NAME=FROM:TO or NAME=FROM:TO:log.',
      },
    );
  }
  return given === undefined ? { name } : parseAxisValues(name, given);
}

/** Parses the values of a parameter, such as `5:50:5`. @throws ServiceError `usage` as `parseAxis` */
export function parseAxisValues(name: string, given: string): AxisText {
  const reject = (what: string): never => {
    throw new ServiceError('usage', `parameter ${JSON.stringify(`${name}=${given}`)}: ${what}`, {
      remedy: 'Write the values as A,B,C, FROM:TO:STEP, FROM:TO or FROM:TO:log.',
    });
  };
  if (!given.includes(':')) return { name, texts: given.split(',') };

  const parts = given.split(':');
  if (parts.length > 3) return reject('a range must be FROM:TO:STEP');
  const isLog = parts[2] === 'log';
  const [from, to, step] = parts.slice(0, isLog ? 2 : 3).map(Number) as [number, number, number?];
  if (![from, to, step ?? 1].every(Number.isFinite))
    return reject('FROM, TO and STEP of a range must be numbers');
  if ((step ?? 1) <= 0 || to < from)
    return reject('STEP must be greater than 0, and FROM at most TO');
  if (isLog && from <= 0) return reject('FROM of a logarithmic range must be greater than 0');
  if (step === undefined) return { name, range: { from, to, scale: isLog ? 'log' : 'linear' } };
  // The tolerance includes the last value if rounding errors of the steps exceed it slightly.
  const count = Math.floor((to - from) / step + 1e-9) + 1;
  if (count > MAX_TRIALS)
    return reject(`${formatCount(count)} values; at most ${formatCount(MAX_TRIALS)} are allowed`);
  const valueAt = (i: number): string => String(Number((from + i * step).toPrecision(12)));
  return { name, texts: Array.from({ length: count }, (_, i) => valueAt(i)) };
}

/**
 * Parses values by the type that the strategy declares for the parameter. Repeated values count once.
 * Numbers outside the declared range are kept; a search skips them.
 *
 * @throws ServiceError `usage` for an unknown or repeated parameter, or a value of another type
 */
export function axesOf(strategy: Strategy, given: readonly AxisText[]): Axis[] {
  return given.map((axis) => {
    const { name } = axis;
    if (given.filter((other) => other.name === name).length > 1) {
      throw new ServiceError('usage', `parameter ${name} is given twice`, {
        remedy: `Write all its values in one place: ${name}=A,B,C.`,
      });
    }
    return axisOf(declaredParam(strategy, name), axis);
  });
}

function declaredParam({ name: strategy, params }: Strategy, name: string): Param {
  if (Object.hasOwn(params, name)) return params[name]!;
  const near = closest(name, Object.keys(params));
  throw new ServiceError('usage', `strategy ${strategy} has no parameter ${name}`, {
    remedy:
      near === undefined
        ? `Its parameters are: ${Object.keys(params).join(', ') || 'none'}.`
        : `Did you mean ${near}?`,
  });
}

function axisOf(param: Param, { name, texts, range }: AxisText): Axis {
  if (texts !== undefined) {
    // `10` and `10.0` are the same number.
    const values = [...new Set(texts.map((text) => paramFromText(param, text)))];
    for (const value of values) {
      const fault = faultOf(name, param, value);
      if (fault !== undefined && typeof value !== 'number') throw invalidValue(name, fault);
    }
    return { name, values };
  }
  switch (param.kind) {
    case 'integer':
    case 'number': {
      const { from = param.min, to = param.max, scale = 'linear' } = range ?? {};
      if (from !== undefined && to !== undefined)
        return rangeAxis(name, param.kind, { from, to, scale });
      throw new ServiceError(
        'usage',
        `the strategy declares no minimum and maximum for parameter ${name}`,
        { remedy: `Specify the values, for example ${name}=5:50:5.` },
      );
    }
    case 'choice':
    case 'flag':
      if (range !== undefined) throw invalidValue(name, 'is not a number, so it has no range');
      return { name, values: param.kind === 'flag' ? [false, true] : param.choices };
    default:
      return param satisfies never;
  }
}

function rangeAxis(
  name: string,
  kind: RangeAxis['kind'],
  { from, to, scale }: NonNullable<AxisText['range']>,
): RangeAxis {
  if (kind === 'number') return { name, kind, from, to, scale };
  const [first, last] = [Math.ceil(from), Math.floor(to)];
  if (first <= last) return { name, kind, from: first, to: last, scale };
  throw invalidValue(name, `has no whole number from ${from} to ${to}`);
}

/** Reason for which a parameter cannot have a value, such as `must be at least 1, not 0`. */
export function faultOf(name: string, param: Param, value: ParamValue): string | undefined {
  return resolveParams({ [name]: param }, { [name]: value }).problems[0]?.message;
}

function invalidValue(name: string, fault: string): ServiceError {
  return new ServiceError('usage', `parameter ${name} ${fault}`, {
    remedy: `Change the values of ${name}.`,
  });
}
