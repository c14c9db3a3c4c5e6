import type { TrialMetrics } from '../search/trial-figures.ts';

export interface SweepRow {
  readonly params: Readonly<Record<string, number | string | boolean>>;
  readonly metrics: TrialMetrics;
  /** With several objectives: 1 for the Pareto front, 2 for the front of the other trials, and so on. */
  readonly front?: number | undefined;
}
