import { readFigure } from '../../base/format-figure.ts';
import type { RunResult } from '../../engine/run-result.ts';
import { mergeTimes } from '../../engine/steps.ts';
import { execute } from '../execute.ts';
import type { BacktestJob } from '../job.ts';
import { metricsFrom, type TrialMetrics } from '../search/trial-figures.ts';
import { conventionsFor, quickStatistics } from '../statistics.ts';
import type { Conventions } from '../summary.ts';

export interface VariantRun {
  readonly run: RunResult;
  readonly conventions: Conventions;
  readonly metrics: TrialMetrics;
}

/** Runs a job in the thread of its strategy, without its gates, findings and files. */
export async function runVariant(
  { instruments, signals, config, strategy, params, barMs, ...job }: BacktestJob,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<VariantRun> {
  const setup = { instruments, signals, config, strategy, params };
  const run = await (job.execute ?? execute)(setup, options);
  const conventions = conventionsFor(mergeTimes(instruments.map(({ bars }) => bars)), { barMs });
  const figures = quickStatistics(run, conventions);
  return { run, conventions, metrics: metricsFrom((name) => readFigure(figures, name)) };
}
