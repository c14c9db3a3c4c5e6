import { readFigure } from '../../base/format-figure.ts';
import type { RunResult } from '../../engine/run-result.ts';
import { mergeTimes } from '../../engine/steps.ts';
import type { Execute } from '../execute.ts';
import type { BacktestJob } from '../job.ts';
import { metricsFrom, type TrialMetrics } from '../search/trial-figures.ts';
import { conventionsFor, quickStatistics } from '../statistics.ts';
import type { Conventions } from '../summary.ts';

export interface VariantRun {
  readonly run: RunResult;
  readonly conventions: Conventions;
  readonly metrics: TrialMetrics;
}

export interface VariantOptions {
  /** Runs the strategy any number of times. */
  readonly execute: Execute;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a job without its gates, findings and files. */
export async function runVariant(
  { instruments, signals, config, strategy, params, barMs }: BacktestJob,
  { execute, ...options }: VariantOptions,
): Promise<VariantRun> {
  const setup = { instruments, signals, config, strategy, params };
  const run = await execute(setup, options);
  const conventions = conventionsFor(mergeTimes(instruments.map(({ bars }) => bars)), { barMs });
  const figures = quickStatistics(run, conventions);
  return { run, conventions, metrics: metricsFrom((name) => readFigure(figures, name)) };
}
