import type { RUN_FIGURES } from '../../base/run-figures.ts';
import type { QuickStatistics } from '../statistics.ts';

/** The figures that a sweep keeps of each run, in the order of the columns of `trials.csv`. */
export const TRIAL_FIGURES = [
  'sharpe',
  'total_return',
  'cagr',
  'annual_return',
  'volatility',
  'sortino',
  'calmar',
  'max_drawdown',
  'trades',
  'win_rate',
  'profit_factor',
  'fees',
  'exposure',
  'end_equity',
] as const;

type ValueAt<Path> = Path extends `${infer Block extends keyof QuickStatistics}.${infer Name}`
  ? Name extends keyof QuickStatistics[Block]
    ? QuickStatistics[Block][Name]
    : never
  : never;

export type TrialFigureName = (typeof TRIAL_FIGURES)[number];

/** The figures by which the trials of a sweep are compared. */
export const SWEEP_FIGURES = [
  'sharpe',
  'total_return',
  'max_drawdown',
  'trades',
  'end_equity',
] as const satisfies readonly TrialFigureName[];

/** Figures of a trial, as in a summary: shares, not percentages, and money in the account currency. An undefined figure is `null`. */
export type TrialMetrics = {
  readonly [N in TrialFigureName]: ValueAt<(typeof RUN_FIGURES)[N]['path']>;
};

export function metricsFrom(read: (name: TrialFigureName, place: number) => unknown): TrialMetrics {
  const entries = TRIAL_FIGURES.map((name, place) => [name, read(name, place)]);
  return Object.fromEntries(entries) as TrialMetrics;
}

/** Whether a trial that an earlier version wrote has all figures. */
export function isComplete(metrics: object): metrics is TrialMetrics {
  return TRIAL_FIGURES.every((name) => Object.hasOwn(metrics, name));
}
