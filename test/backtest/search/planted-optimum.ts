import { axesOf, parseAxis } from '../../../src/backtest/search/axes.ts';
import type { Goal } from '../../../src/backtest/search/goal.ts';
import { SampledTrials, type SamplerOptions } from '../../../src/backtest/search/sampled-trials.ts';
import { metricsFrom, type TrialMetrics } from '../../../src/backtest/search/trial-figures.ts';
import { TrialResults } from '../../../src/backtest/search/trial-results.ts';
import { choice, flag, integer, number } from '../../../src/engine/params.ts';
import { defineStrategy } from '../../../src/engine/strategy.ts';

export const strategy = defineStrategy({
  name: 'planted',
  description: 'made by a test',
  params: {
    length: integer({ default: 20, min: 1 }),
    scale: number({ default: 1 }),
    mode: choice({ default: 'slow', choices: ['slow', 'fast', 'mixed'] }),
    isHedged: flag({ default: false }),
  },
  check: ({ length, scale }) =>
    scale > length / 100 ? 'scale must be at most 1% of length' : undefined,
  create: () => ({ onBar() {} }),
});

type Params = Parameters<NonNullable<typeof strategy.check>>[0];

const AXES = axesOf(
  strategy,
  ['length=1:300', 'scale=0.001:10:log', 'mode', 'isHedged'].map(parseAxis),
);

/** Lies at length 70, scale 0.02, mode fast, hedged, and has the value 0 there. */
export function plantedSharpe({ length, scale, mode, isHedged }: Params): number {
  const distance = ((length - 70) / 100) ** 2 + (Math.log(scale / 0.02) / 5) ** 2;
  return -distance - (mode === 'fast' ? 0 : 0.2) - (isHedged ? 0 : 0.1);
}

const metricsWith = (figures: Partial<TrialMetrics>): TrialMetrics =>
  metricsFrom((name) => figures[name] ?? null);

/** A search before its first trial. */
export function plannedTrials(options: SamplerOptions): {
  readonly trials: SampledTrials;
  readonly results: TrialResults;
} {
  const defaults = { length: 20, scale: 1, mode: 'slow', isHedged: false };
  const trials = new SampledTrials(strategy, defaults, AXES, options);
  return { trials, results: new TrialResults(trials) };
}

/** Runs a search whose figures are a function of the parameters. */
export function search(
  options: SamplerOptions & { readonly goal: Goal },
  figuresOf: (params: Params) => Partial<TrialMetrics>,
): { readonly trials: SampledTrials; readonly results: TrialResults } {
  const { trials, results } = plannedTrials(options);
  for (;;) {
    const indices = trials.nextGeneration(results);
    if (indices.length === 0) return { trials, results };
    for (const index of indices) {
      const trial = trials.trial(index);
      results.add({ ...trial, metrics: metricsWith(figuresOf(trial.params as Params)) });
    }
  }
}
