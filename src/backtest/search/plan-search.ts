import { packageVersion } from '../../base/package-version.ts';
import { mergeTimes } from '../../engine/steps.ts';
import type { BacktestJob } from '../job.ts';
import { canonicalDigest } from '../lock.ts';
import { conventionsFor } from '../statistics.ts';
import { axesOf, gridOf, type Axis, type AxisText, type Grid } from './grid.ts';
import { TrialResults } from './trial-results.ts';
import type { TrialSetup } from './trial.ts';

/** A search for parameters over the bars of a job. */
export interface Search {
  readonly job: BacktestJob;
  readonly axes: readonly Axis[];
  readonly trials: Grid;
  readonly setup: TrialSetup;
  /** Identifies the search by spec, data, strategy, engine, grid and package version. */
  readonly digest: string;
  /** Filled by `runSearch`. */
  readonly results: TrialResults;
}

/**
 * @param timeoutMs longest time without a return from the strategy
 * @throws ServiceError `usage` for invalid parameters
 */
export function planSearch(
  job: BacktestJob,
  params: readonly AxisText[],
  timeoutMs: number,
): Search {
  const axes = axesOf(job.strategy, params);
  const trials = gridOf(job.strategy, job.params, axes);
  const { instruments, signals, config, barMs } = job;
  const conventions = conventionsFor(mergeTimes(instruments.map(({ bars }) => bars)), { barMs });
  return {
    job,
    axes,
    trials,
    setup: {
      instruments: instruments.map(({ symbol, bars, warmUp }) => ({ symbol, bars, warmUp })),
      signals,
      config,
      conventions,
      timeoutMs,
    },
    digest: canonicalDigest({ lock: job.lock.digest, axes, package: packageVersion() }),
    results: new TrialResults(trials),
  };
}
