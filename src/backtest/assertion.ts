import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import type { Gate } from './summary.ts';

/** Least and greatest possible value of a figure, both included. */
export type Range = readonly [least: number, greatest: number];

/** A condition on a figure, such as `sharpe >= 0.5`. */
export interface Assertion<Name extends string = string> {
  readonly name: Name;
  readonly op: Gate['op'];
  readonly threshold: number;
}

const ASSERTION = /^\s*(\w+)\s*(>=|<=|>|<)\s*([^\s<>=]+)\s*$/;

/**
 * Parses `sharpe>=0.5`.
 *
 * @param ranges of the figures that can be asserted
 * @throws ServiceError `usage` for another form, an unknown figure, a threshold that is not a number,
 *   or a condition that is always true or never
 */
export function parseAssertionOn<Name extends string>(
  ranges: Readonly<Record<Name, Range>>,
  text: string,
): Assertion<Name> {
  const refuse = (message: string, remedy: string): never => {
    throw new ServiceError('usage', `assertion ${JSON.stringify(text)}: ${message}`, { remedy });
  };
  const [, name, op, number] = ASSERTION.exec(text) ?? [];
  const names = Object.keys(ranges) as Name[];
  if (name === undefined || op === undefined || number === undefined) {
    return refuse(
      'not of the form METRIC>=NUMBER',
      `Write it as '${names[0]}>=0.5'; >, <= and < also work.`,
    );
  }
  if (!isNameOf(ranges, name)) {
    const suggestion = closest(name, names);
    return refuse(
      `unknown metric ${name}`,
      suggestion === undefined ? `Use one of ${names.join(', ')}.` : `Did you mean ${suggestion}?`,
    );
  }
  const threshold = Number(number);
  if (!Number.isFinite(threshold)) {
    return refuse(`${number} is not a number`, 'Write shares as numbers: 0.05 for 5 %.');
  }
  const assertion = { name, op: op as Gate['op'], threshold };
  const fault = alwaysHolds(assertion, ranges[name]) ?? neverHolds(assertion, ranges[name]);
  return fault === undefined
    ? assertion
    : refuse(fault, 'Choose a threshold that some results pass and others do not.');
}

function isNameOf<Name extends string>(
  ranges: Readonly<Record<Name, Range>>,
  name: string,
): name is Name {
  return Object.hasOwn(ranges, name);
}

/** Returns the reason if every possible value passes; otherwise undefined. */
export function alwaysHolds(assertion: Assertion, [least, greatest]: Range): string | undefined {
  const always = holds(least, assertion) && holds(greatest, assertion);
  return always ? `can never fail: ${inWords(assertion.name, [least, greatest])}` : undefined;
}

/** Returns the reason if no possible value passes; otherwise undefined. */
export function neverHolds(assertion: Assertion, [least, greatest]: Range): string | undefined {
  const never = !holds(least, assertion) && !holds(greatest, assertion);
  return never ? `can never pass: ${inWords(assertion.name, [least, greatest])}` : undefined;
}

function inWords(name: string, [least, greatest]: Range): string {
  if (greatest === Infinity) return `${name} is never below ${least}`;
  if (least === -Infinity) return `${name} is never above ${greatest}`;
  return `${name} lies between ${least} and ${greatest}`;
}

export function holds(value: number, { op, threshold }: Assertion): boolean {
  switch (op) {
    case '>=':
      return value >= threshold;
    case '<=':
      return value <= threshold;
    case '>':
      return value > threshold;
    case '<':
      return value < threshold;
    default:
      return op satisfies never;
  }
}
