import { join } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import type { RunResult } from '../../engine/run-result.ts';
import { mergeTimes } from '../../engine/steps.ts';
import { formatTime } from '../../market/bar-time.ts';
import type { Execute } from '../execute.ts';
import { executorOf } from '../executor-of.ts';
import type { BacktestJob } from '../job.ts';
import type { ExecutedTrial } from '../ledger/packed-trials.ts';
import { prepareDirectory } from '../run-files.ts';
import type { Axis } from '../search/axes.ts';
import { planSearch, type Search, type SearchRequest } from '../search/plan-search.ts';
import { runSearch } from '../search/run-search.ts';
import { type TrialLimits, withTrialPool } from '../search/trial-pool.ts';
import type { TrialRunner } from '../search/trial-runner.ts';
import type { TrialMetrics } from '../search/trial-figures.ts';
import type { RankedTrial } from '../search/trial-results.ts';
import { metricsOf } from '../search/trial.ts';
import { conventionsFor } from '../statistics.ts';
import type { StrategySource } from '../strategy-source.ts';
import type { Conventions } from '../summary.ts';
import { flatReasonOf, runFlat, type FlatReason } from './flat-window.ts';
import { joinRuns } from './join-runs.ts';
import {
  planWindows,
  type CommonSpan,
  type TrainTest,
  type WindowOptions,
} from './plan-windows.ts';
import { profilesOf, type Profiles } from './stability.ts';
import { cutsOf, windowOf } from './window-of.ts';

export interface WalkForwardOptions extends WindowOptions, TrialLimits {
  /** Search that each training window repeats. */
  readonly search: SearchRequest;
  /** Longest time without a return from the strategy, ms. */
  readonly timeoutMs: number;
  /** Directory for the logs of the searches, from which they resume; by default there are no logs. */
  readonly directory?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with ended trials of a training window, and with the run over a test window. */
  readonly count?: ((window: BacktestJob, ended: readonly ExecutedTrial[]) => void) | undefined;
  /** Called with the number of trials that have ended, and of all windows. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface WindowTrials {
  readonly total: number;
  readonly failed: number;
  readonly pruned: number;
  /** Combinations that the strategy does not accept. */
  readonly skipped: number;
}

/** A window of a walk-forward analysis, after its run. */
export interface WalkedWindow extends TrainTest {
  /** The job over the training window. */
  readonly training: BacktestJob;
  /** The job over the test window. */
  readonly testing: BacktestJob;
  readonly trials: WindowTrials;
  /** Best trial in training; undefined if no trial could be chosen. */
  readonly best: Pick<RankedTrial, 'params' | 'metrics'> | undefined;
  /** Present if no trial could be chosen. */
  readonly flat: FlatReason | undefined;
  readonly profiles: Profiles;
  /** Run over the test window with the parameters of the best trial, or without a position. */
  readonly result: RunResult;
  readonly outOfSample: TrialMetrics;
}

export interface WalkForward {
  readonly job: BacktestJob;
  readonly plan: WindowOptions & Pick<WalkForwardOptions, 'search'>;
  readonly axes: readonly Axis[];
  /** One or more; fewer than planned if the account is lost. */
  readonly windows: readonly WalkedWindow[];
  /** The job over all planned test windows. */
  readonly tested: BacktestJob;
  /** The runs over all test windows, joined. */
  readonly result: RunResult;
  readonly conventions: Conventions;
}

/**
 * Chooses parameters in each training window, and runs them over the test window that follows it. Each
 * test begins without a position, with the cash with which the one before it ended, and closes its
 * positions at its last closes. Its indicators see all bars before it. A test window is flat if no trial of
 * its training meets the conditions, or if all fail.
 *
 * @param job with the outputs of its models
 * @throws ServiceError `usage` for windows or parameters that do not fit the job, `strategy_failed` or
 *   `strategy_timeout` if a chosen trial fails in its test, `strategy_failed` if all trials of all windows
 *   fail; otherwise as `runSearch`
 */
export function walkForward(
  job: BacktestJob,
  source: StrategySource,
  options: WalkForwardOptions,
): Promise<WalkForward> {
  return withTrialPool(source, options, (runner) => walkWindows(job, source, runner, options));
}

async function walkWindows(
  job: BacktestJob,
  source: StrategySource,
  runner: TrialRunner,
  options: WalkForwardOptions,
): Promise<WalkForward> {
  const { search: request, timeoutMs, memoryMb } = options;
  const plans = planWindows(commonSpanOf(job), options);
  // A window without bars is an error before the first search, not hours later.
  for (const window of plans.flatMap(({ train, test }) => [train, test])) cutsOf(job, window);
  const joined = windowOf(job, { from: plans[0]!.test.from, to: plans.at(-1)!.test.to });
  const conventions = conventionsFor(timesOf(joined), job);
  const run = executorOf(source, { timeoutMs, memoryMb });
  const windows: WalkedWindow[] = [];
  let axes: readonly Axis[] = [];
  let { cash } = job.config;
  for (const [index, plan] of plans.entries()) {
    const training = windowOf(job, plan.train);
    const search = planSearch(training, request, timeoutMs);
    ({ axes } = search);
    await searchWindow(search, runner, { index, of: plans.length }, options);
    const best = search.results.best(search.goal);
    const testing = windowOf(job, plan.test);
    const tested = await testWindow(search, { testing, cash, conventions, run }, options);
    windows.push({
      ...plan,
      training,
      testing,
      trials: countsOf(search),
      best,
      profiles: profilesOf(search),
      ...tested,
    });
    ({ cash } = tested.result);
    if (cash <= 0) break;
  }
  const [first] = windows;
  if (windows.every(({ flat }) => flat !== undefined && flat.reason !== 'constraints_not_met')) {
    throw new ServiceError('strategy_failed', `in every window, ${first!.flat!.detail}`);
  }
  return {
    job,
    plan: options,
    axes,
    windows,
    tested: joined,
    result: joinRuns(windows.map(({ result }) => result)),
    conventions,
  };
}

interface TestedWindow {
  readonly testing: BacktestJob;
  /** Cash at its start. */
  readonly cash: number;
  readonly conventions: Conventions;
  readonly run: Execute;
}

/**
 * Runs the best trial of a search over the test window, and counts the run. The window is flat without
 * such a trial.
 */
async function testWindow(
  search: Search,
  { testing, cash, conventions, run }: TestedWindow,
  { timeoutMs, signal, count }: WalkForwardOptions,
): Promise<Pick<WalkedWindow, 'result' | 'outOfSample' | 'flat'>> {
  const best = search.results.best(search.goal);
  if (best === undefined) {
    const result = await runFlat(testing, cash, { timeoutMs, signal });
    return { result, outOfSample: metricsOf(result, conventions), flat: flatReasonOf(search) };
  }
  const { params } = best;
  const { instruments, signals, config, strategy } = testing;
  const setup = { instruments, signals, strategy, params };
  const ownConfig = { ...config, cash, closesAtEnd: true };
  let result: RunResult;
  try {
    result = await run({ ...setup, config: ownConfig }, { timeoutMs, signal });
  } catch (error) {
    if (signal?.aborted || !isFailure(error)) throw error;
    count?.(testing, [{ params, sharpe: null }]);
    throw failedTest(error, testing, params);
  }
  const outOfSample = metricsOf(result, conventions);
  count?.(testing, [{ params, sharpe: outOfSample.sharpe }]);
  return { result, outOfSample, flat: undefined };
}

/** Whether an error is a failure of the strategy, which counts as a trial. */
function isFailure(error: unknown): error is ServiceError {
  return (
    error instanceof ServiceError &&
    (error.code === 'strategy_failed' || error.code === 'strategy_timeout')
  );
}

/** Without the rest of the test, the analysis would contain a loss only in part. */
function failedTest(
  error: ServiceError,
  testing: BacktestJob,
  params: RankedTrial['params'],
): ServiceError {
  const times = timesOf(testing);
  const window = `${formatTime(times[0]!)} to ${formatTime(times.at(-1)!)}`;
  const chosen = Object.entries(params).map(([name, value]) => `${name}=${String(value)}`);
  return new ServiceError(
    error.code,
    `the test from ${window} with ${chosen.join(' ')} failed: ${error.message}`,
    {
      remedy: error.remedy ?? 'Correct the strategy, or exclude these parameters.',
      cause: error.cause,
    },
  );
}

/** Runs the search of window `index`, with a log in a directory of its own. */
async function searchWindow(
  search: Search,
  runner: TrialRunner,
  { index, of }: { readonly index: number; readonly of: number },
  { directory, signal, count, onProgress }: WalkForwardOptions,
): Promise<void> {
  const own = directory && join(directory, 'windows', String(index + 1).padStart(2, '0'));
  if (own !== undefined) await prepareDirectory(own);
  const { capacity } = search.trials;
  await runSearch(search, runner, {
    directory: own,
    signal,
    count: count && ((ended) => count(search.job, ended)),
    onProgress: (done) => onProgress?.(index * capacity + done, of * capacity),
  });
}

function commonSpanOf({ instruments }: BacktestJob): CommonSpan {
  return {
    first: Math.max(...instruments.map(({ bars }) => bars.time[0]!)),
    last: Math.min(...instruments.map(({ bars }) => bars.time[bars.length - 1]!)),
  };
}

function timesOf({ instruments }: BacktestJob): Float64Array {
  return mergeTimes(instruments.map(({ bars }) => bars));
}

function countsOf({ trials, results }: Search): WindowTrials {
  const { failed, pruned } = results;
  return { total: trials.count, failed, pruned, skipped: trials.skipped.total };
}
