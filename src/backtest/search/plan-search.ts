import { ServiceError } from '../../base/errors.ts';
import { formatCount } from '../../base/format.ts';
import { packageVersion } from '../../base/package-version.ts';
import { mergeTimes } from '../../engine/steps.ts';
import type { BacktestJob } from '../job.ts';
import { canonicalDigest } from '../run-lock.ts';
import { conventionsFor } from '../statistics.ts';
import { axesOf, type Axis, type AxisText } from './axes.ts';
import { HIGHEST_SHARPE, type Goal } from './goal.ts';
import { gridOf } from './grid.ts';
import { partsOf } from './pruning.ts';
import { SampledTrials } from './sampled-trials.ts';
import { TrialResults } from './trial-results.ts';
import type { SearchMethod } from './search-method.ts';
import type { TrialSource } from './trial-source.ts';
import type { TrialSetup } from './trial.ts';

export interface SearchRequest {
  readonly params: readonly AxisText[];
  /** A grid by default. */
  readonly method?: SearchMethod | undefined;
  /** The highest Sharpe ratio by default. */
  readonly goal?: Goal | undefined;
  /** Ends trials that rank low over the first part of the bars; see `pruning.ts`. */
  readonly prune?: boolean | undefined;
}

/** A search for parameters over the bars of a job. */
export interface Search {
  readonly job: BacktestJob;
  readonly axes: readonly Axis[];
  readonly method: SearchMethod;
  readonly goal: Goal;
  readonly trials: TrialSource;
  readonly setup: TrialSetup;
  /** Setups over the first parts of the bars; empty without pruning. */
  readonly parts: readonly TrialSetup[];
  /** Identifies the search by everything that decides its trials and their figures. */
  readonly digest: string;
  /** Filled by `runSearch`. */
  readonly results: TrialResults;
}

/** Trials over three objectives are compared pair by pair. */
const MAX_COMPARED = 20_000;
/** A proposal of `tpe` takes time in proportion to the number of earlier trials. */
const MAX_SAMPLED = { random: 100_000, tpe: 5000 } as const;

/**
 * @param timeoutMs longest time without a return from the strategy
 * @throws ServiceError `usage` for invalid parameters, or too many trials
 */
export function planSearch(
  job: BacktestJob,
  { params, method = { kind: 'grid' }, goal = HIGHEST_SHARPE, prune = false }: SearchRequest,
  timeoutMs: number,
): Search {
  const axes = axesOf(job.strategy, params);
  const trials = trialsOf({ job, axes, method, goal, prune });
  if (goal.objectives.length > 2 && trials.capacity > MAX_COMPARED) {
    throw new ServiceError(
      'usage',
      `${formatCount(trials.capacity)} trials are too many for a search with more than two objectives`,
      { remedy: `Use at most two objectives, or run at most ${formatCount(MAX_COMPARED)} trials.` },
    );
  }
  const setup = setupOf(job, timeoutMs);
  const { conventions } = setup;
  const parts = prune
    ? partsOf(job).map((part) => ({ ...setupOf(part, timeoutMs), conventions }))
    : [];
  const isGuided = method.kind === 'tpe' || prune;
  return {
    job,
    axes,
    method,
    goal,
    trials,
    setup,
    parts,
    // If the goal only ranks the results, searches with different goals share their trials.
    digest: canonicalDigest({
      lock: job.lock.digest,
      axes,
      package: packageVersion(),
      ...(method.kind !== 'grid' && { method }),
      ...(isGuided && { goal }),
      ...(prune && { prune }),
    }),
    results: new TrialResults(trials, { rungs: parts.length + 1 }),
  };
}

/** Returns the inputs of trials over the bars of a job. */
export function setupOf(
  { instruments, signals, config, barMs }: BacktestJob,
  timeoutMs: number,
): TrialSetup {
  const times = mergeTimes(instruments.map(({ bars }) => bars));
  return {
    instruments: instruments.map(({ symbol, bars, warmUp }) => ({ symbol, bars, warmUp })),
    signals,
    config,
    conventions: conventionsFor(times, { barMs }),
    timeoutMs,
  };
}

/** Creates the trials of a search; none has run yet. */
export function trialsOf({
  job,
  axes,
  method,
  goal,
  prune,
}: Pick<Search, 'job' | 'axes' | 'method' | 'goal'> & Pick<SearchRequest, 'prune'>): TrialSource {
  if (method.kind === 'grid') return gridOf(job.strategy, job.params, axes);
  const most = MAX_SAMPLED[method.kind];
  if (method.trials > most) {
    throw new ServiceError(
      'usage',
      `${formatCount(method.trials)} trials; at most ${formatCount(most)} are allowed`,
      {
        remedy: `Run at most ${formatCount(most)} trials of a ${method.kind} search.`,
      },
    );
  }
  return new SampledTrials(job.strategy, job.params, axes, { ...method, goal, prune });
}
