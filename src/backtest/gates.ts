import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import { readFigure } from '../base/format-figure.ts';
import { RUN_FIGURES } from '../base/run-figures.ts';
import { UNDEFINED_REASONS } from './summary.ts';
import type { Gate, Summary } from './summary.ts';

export type GateFigures = Pick<
  Summary,
  | 'equity'
  | 'returns'
  | 'risk'
  | 'trades'
  | 'costs'
  | 'exposure'
  | 'benchmark'
  | 'orders'
  | 'ambiguity'
  | 'margin_calls'
  | 'deflated_sharpe'
  | 'undefined'
>;

type Figures = typeof RUN_FIGURES;
/** A figure that can be a gate; its range shows whether a threshold can fail and pass. */
export type MetricName = {
  [N in keyof Figures]: Figures[N] extends { readonly range: unknown } ? N : never;
}[keyof Figures];

export const METRIC_NAMES = Object.entries(RUN_FIGURES).flatMap(([name, figure]) =>
  'range' in figure ? [name as MetricName] : [],
);

export function isMetric(name: string): name is MetricName {
  return METRIC_NAMES.includes(name as MetricName);
}

export interface Assertion {
  readonly name: MetricName;
  readonly op: Gate['op'];
  readonly threshold: number;
}

const ASSERTION = /^\s*(\w+)\s*(>=|<=|>|<)\s*([^\s<>=]+)\s*$/;

/**
 * Parses `sharpe>=0.5`.
 *
 * @throws ServiceError `usage` for another form, an unknown metric, a threshold that is not a number,
 *   or a condition that is always true or never
 */
export function parseAssertion(text: string): Assertion {
  const refuse = (message: string, remedy: string): never => {
    throw new ServiceError('usage', `assertion ${JSON.stringify(text)}: ${message}`, { remedy });
  };
  const [, name, op, number] = ASSERTION.exec(text) ?? [];
  if (name === undefined || op === undefined || number === undefined) {
    return refuse(
      'not of the form METRIC>=NUMBER',
      "Write it as 'sharpe>=0.5'; >, <= and < also work.",
    );
  }
  if (!isMetric(name)) {
    const suggestion = closest(name, METRIC_NAMES);
    return refuse(
      `unknown metric ${name}`,
      suggestion === undefined
        ? `Use one of ${METRIC_NAMES.join(', ')}.`
        : `Did you mean ${suggestion}?`,
    );
  }
  const threshold = Number(number);
  if (!Number.isFinite(threshold)) {
    return refuse(`${number} is not a number`, 'Write shares as numbers: 0.05 for 5 %.');
  }
  const assertion = { name, op: op as Gate['op'], threshold };
  const fault = impossibleToFail(assertion) ?? impossibleToPass(assertion);
  return fault === undefined
    ? assertion
    : refuse(fault, 'Choose a threshold that some results pass and others do not.');
}

/** Converts a spec's `metrics` to gates. Values equal to `min` or `max` pass. */
export function gatesOfSpec(
  metrics: readonly {
    readonly name: MetricName;
    readonly min?: number | undefined;
    readonly max?: number | undefined;
  }[],
): Assertion[] {
  return metrics.flatMap(({ name, min, max }) => [
    ...(min === undefined ? [] : [{ name, op: '>=', threshold: min } as const]),
    ...(max === undefined ? [] : [{ name, op: '<=', threshold: max } as const]),
  ]);
}

/** Returns the reason if every possible value passes; otherwise undefined. */
export function impossibleToFail(assertion: Assertion): string | undefined {
  const [least, greatest] = RUN_FIGURES[assertion.name].range;
  const always = holds(least, assertion) && holds(greatest, assertion);
  return always ? `can never fail: ${rangeOf(assertion.name)}` : undefined;
}

export function impossibleToPass(assertion: Assertion): string | undefined {
  const [least, greatest] = RUN_FIGURES[assertion.name].range;
  const never = !holds(least, assertion) && !holds(greatest, assertion);
  return never ? `can never pass: ${rangeOf(assertion.name)}` : undefined;
}

function rangeOf(name: MetricName): string {
  const [least, greatest] = RUN_FIGURES[name].range;
  if (greatest === Infinity) return `${name} is never below ${least}`;
  if (least === -Infinity) return `${name} is never above ${greatest}`;
  return `${name} lies between ${least} and ${greatest}`;
}

function holds(value: number, { op, threshold }: Assertion): boolean {
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

/** An undefined figure does not pass. */
export function evaluateGates(assertions: readonly Assertion[], figures: GateFigures): Gate[] {
  return assertions.map((assertion) => {
    const value = readFigure(figures, assertion.name);
    if (value !== null) return { ...assertion, value, pass: holds(value, assertion) };
    const reason = figures.undefined[RUN_FIGURES[assertion.name].path];
    return { ...assertion, value, pass: false, ...(reason !== undefined && { reason }) };
  });
}

/** The value of an evaluated gate, or why it is undefined. */
export function valueOf({ value, reason }: Gate): string {
  if (value !== null) return String(value);
  return reason === undefined ? 'undefined' : `undefined: ${UNDEFINED_REASONS[reason]}`;
}
