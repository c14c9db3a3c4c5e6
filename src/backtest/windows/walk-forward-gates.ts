import { holds, parseAssertionOn, type Assertion, type Range } from '../assertion.ts';
import {
  evaluateGates,
  isMetric,
  METRIC_RANGES,
  type GateFigures,
  type MetricName,
} from '../gates.ts';
import type { Gate } from '../summary.ts';
import type { Efficiency } from './efficiency.ts';

/** Figures of a walk-forward analysis that a run does not have, by their names in gates. */
const OWN_FIGURES = {
  efficiency: { field: 'value', range: [-Infinity, Infinity] },
  in_sample_annual: { field: 'in_sample_annual', range: [-1, Infinity] },
  out_of_sample_annual: { field: 'out_of_sample_annual', range: [-1, Infinity] },
  profitable_windows: { field: 'profitable_windows', range: [0, 1] },
} as const satisfies Readonly<
  Record<string, { readonly field: keyof Efficiency; readonly range: Range }>
>;

type OwnName = keyof typeof OWN_FIGURES;
export type WalkForwardAssertion = Assertion<OwnName | MetricName>;

const OWN_RANGES = Object.fromEntries(
  Object.entries(OWN_FIGURES).map(([name, { range }]) => [name, range]),
) as Readonly<Record<OwnName, Range>>;

/** Parses `efficiency>=0.5`, or a gate on a figure of the joined tests. @throws ServiceError `usage` */
export function parseWalkForwardAssertion(text: string): WalkForwardAssertion {
  return parseAssertionOn({ ...OWN_RANGES, ...METRIC_RANGES }, text);
}

/** An undefined figure does not pass. */
export function evaluateWalkForwardGates(
  assertions: readonly WalkForwardAssertion[],
  figures: GateFigures & { readonly efficiency: Efficiency },
): Gate[] {
  return assertions.map(({ name, op, threshold }): Gate => {
    if (isMetric(name)) return evaluateGates([{ name, op, threshold }], figures)[0]!;
    const { field } = OWN_FIGURES[name];
    const gate = { name, op, threshold };
    const value = figures.efficiency[field];
    if (value !== null) return { ...gate, value, pass: holds(value, gate) };
    const reason = figures.undefined[`efficiency.${field}`];
    return { ...gate, value, pass: false, ...(reason !== undefined && { reason }) };
  });
}
