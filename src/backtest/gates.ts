import { readFigure } from '../base/format-figure.ts';
import { RUN_FIGURES } from '../base/run-figures.ts';
import {
  alwaysHolds,
  holds,
  neverHolds,
  parseAssertionOn,
  type Assertion,
  type Range,
} from './assertion.ts';
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
  | 'deflated_sharpe'
  | 'orders'
  | 'ambiguity'
  | 'margin_calls'
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

/** A condition on a figure of a run. */
export type RunAssertion = Assertion<MetricName>;

/** Least and greatest possible value of each metric. */
export const METRIC_RANGES = Object.fromEntries(
  METRIC_NAMES.map((name) => [name, RUN_FIGURES[name].range]),
) as Readonly<Record<MetricName, Range>>;

/** Parses `sharpe>=0.5`. @throws ServiceError `usage` */
export function parseAssertion(text: string): RunAssertion {
  return parseAssertionOn(METRIC_RANGES, text);
}

/** Converts a spec's `metrics` to gates. Values equal to `min` or `max` pass. */
export function gatesOfSpec(
  metrics: readonly {
    readonly name: MetricName;
    readonly min?: number | undefined;
    readonly max?: number | undefined;
  }[],
): RunAssertion[] {
  return metrics.flatMap(({ name, min, max }) => [
    ...(min === undefined ? [] : [{ name, op: '>=', threshold: min } as const]),
    ...(max === undefined ? [] : [{ name, op: '<=', threshold: max } as const]),
  ]);
}

/** Returns the reason if every possible value passes; otherwise undefined. */
export function impossibleToFail(assertion: RunAssertion): string | undefined {
  return alwaysHolds(assertion, METRIC_RANGES[assertion.name]);
}

export function impossibleToPass(assertion: RunAssertion): string | undefined {
  return neverHolds(assertion, METRIC_RANGES[assertion.name]);
}

/** An undefined figure does not pass. */
export function evaluateGates(assertions: readonly RunAssertion[], figures: GateFigures): Gate[] {
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
