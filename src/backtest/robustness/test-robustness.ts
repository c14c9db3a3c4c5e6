import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Assertion } from '../assertion.ts';
import { ServiceError } from '../../base/errors.ts';
import type { RunResult } from '../../engine/run-result.ts';
import { mergeTimes } from '../../engine/steps.ts';
import { executorOf } from '../executor-of.ts';
import type { BacktestJob } from '../job.ts';
import { canonicalDigest } from '../run-lock.ts';
import { returnsOf, sampleEquity } from '../returns.ts';
import { planSearch, type Search, type SearchRequest } from '../search/plan-search.ts';
import { runSearch } from '../search/run-search.ts';
import type { CountTrials } from '../search/saved-trials.ts';
import { type TrialLimits, withTrialPool } from '../search/trial-pool.ts';
import type { TrialRunner } from '../search/trial-runner.ts';
import type { Trial } from '../search/trial.ts';
import { TrialResults } from '../search/trial-results.ts';
import type { TrialMetrics } from '../search/trial-figures.ts';
import { daysOf } from '../statistics.ts';
import type { StrategySource } from '../strategy-source.ts';
import type { Conventions } from '../summary.ts';
import { bootstrap } from './bootstrap.ts';
import { neighborsOf } from './neighbors.ts';
import { overfittingOf } from './overfitting.ts';
import { scoreOf, searchPermutations } from './permutation-test.ts';
import { robustnessDocument, type RobustnessDocument } from './robustness-document.ts';
import type {
  PermutationTest,
  RobustnessFigureName,
  RobustnessTests,
  Variant,
} from './robustness-figures.ts';
import { countPermutations, requirePossible } from './possible-figures.ts';
import { runVariant } from './run-variant.ts';
import { runVariants } from './run-variants.ts';
import { stressesOf, type StressName } from './stresses.ts';

export interface RobustnessRequest {
  /** Search that chooses the parameters. If it has none, the parameters of the job are the only trial. */
  readonly search: SearchRequest;
  /** A whole number below 2^32. */
  readonly seed: number;
  /** Number of blocks of the cross-validation, even. */
  readonly blocks: number;
  /** 1,000 by default, or none for a bot with models. */
  readonly permutations: number | undefined;
  readonly assertions: readonly Assertion<RobustnessFigureName>[];
}

export interface RobustnessPlan {
  readonly search: Search;
  readonly seed: number;
  readonly permutations: number;
  readonly assertions: readonly Assertion<RobustnessFigureName>[];
  /** Digest of everything that decides the test but the number of permutations. */
  readonly digest: string;
}

/** The phases in order, named after what each one counts. */
export type RobustnessPhase = 'trials' | 'cross-validated trials' | 'permutations' | 'other runs';

export interface RobustnessOptions extends TrialLimits {
  /** Existing directory of the logs from which an interrupted test resumes; by default there are none. */
  readonly directory?: string | undefined;
  /** Called with ended trials of the search and ended neighbors, before they are logged. */
  readonly count?: CountTrials | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((phase: RobustnessPhase, done: number, total: number) => void) | undefined;
}

/** Resamples of the bootstrap: the bounds of its intervals are the 50th and the 1,950th. */
const RESAMPLES = 1999;

/**
 * @param timeoutMs longest time without a return from the strategy
 * @throws ServiceError `usage` for invalid parameters, several objectives, pruning, permutations of a bot
 *   with models, or an assertion that the test can never meet
 */
export function planRobustness(
  job: BacktestJob,
  { search: request, seed, blocks: count, permutations: asked, assertions }: RobustnessRequest,
  timeoutMs: number,
): RobustnessPlan {
  if (request.prune === true) {
    throw new ServiceError('usage', 'a pruned search cannot be cross-validated', {
      remedy: 'Search without pruning: every trial must run over all bars.',
    });
  }
  const search = planSearch(job, request, timeoutMs);
  if (search.goal.objectives.length > 1) {
    throw new ServiceError('usage', 'a robustness test accepts only one objective', {
      remedy: 'Choose one objective.',
    });
  }
  const permutations = countPermutations(job.signals !== undefined, asked);
  requirePossible(assertions, search, permutations);
  const blocks = { count, returns: countReturns(job, search.setup.conventions) };
  const digest = canonicalDigest({ search: search.digest, blocks: count });
  return {
    seed,
    permutations,
    assertions,
    digest: canonicalDigest({ search: digest, goal: search.goal, seed }),
    search: {
      ...search,
      setup: { ...search.setup, blocks },
      digest,
      results: new TrialResults(search.trials, { blocks }),
    },
  };
}

/** Number of returns of a run whose account is not lost. */
function countReturns({ instruments, config }: BacktestJob, { sampling }: Conventions): number {
  const time = mergeTimes(instruments.map(({ bars }) => bars));
  const equity = new Float64Array(time.length).fill(config.cash);
  return sampleEquity({ time, equity, initialCash: config.cash }, sampling).length - 1;
}

/**
 * Searches the parameters, then tests whether the best ones are luck and how much they depend on exact
 * conditions. The result does not depend on the number of workers, nor on interruptions.
 *
 * @throws as `runSearch`; ServiceError `strategy_failed` if every trial failed
 */
export function testRobustness(
  plan: RobustnessPlan,
  source: StrategySource,
  options: RobustnessOptions,
): Promise<RobustnessDocument> {
  return withTrialPool(source, options, (runner) => runTests(plan, source, runner, options));
}

async function runTests(
  plan: RobustnessPlan,
  source: StrategySource,
  runner: TrialRunner,
  options: RobustnessOptions,
): Promise<RobustnessDocument> {
  const { search, seed, assertions } = plan;
  const { job, results, axes } = search;
  const { onProgress = () => {}, signal } = options;
  const report = (phase: RobustnessPhase, total: number) => (done: number) =>
    onProgress(phase, done, total);
  await runSearch(search, runner, {
    ...options,
    onProgress: report('trials', search.trials.capacity),
  });
  const chosen = results.best(search.goal);
  if (chosen === undefined) {
    if (results.completed > 0) {
      throw new ServiceError('failure', 'no trial meets the conditions', {
        remedy: 'Relax the conditions, or choose other values of the parameters.',
      });
    }
    throw new ServiceError(
      'strategy_failed',
      `every trial failed; the first error is: ${results.firstError}`,
    );
  }
  const overfitting = await testOverfitting(search, options);
  const permuted = await permutedScores(plan, runner, options);
  const { timeoutMs } = search.setup;
  const best: BacktestJob = { ...job, params: chosen.params };
  const execute = executorOf(source, { timeoutMs, memoryMb: options.memoryMb });
  const base = await runVariant(best, { execute, timeoutMs, signal });
  const neighbors = neighborsOf(job.strategy, chosen.params, axes).map(
    ({ name, value, params }) =>
      ({ name: 'neighbor', label: `${name}=${value}`, job: { ...job, params } }) as const,
  );
  const stresses = stressesOf(best, firstOrderOf(base.run));
  const variants = await runVariants(search, runner, [...neighbors, ...stresses], {
    ...options,
    onProgress: report('other runs', neighbors.length + stresses.length),
  });
  return robustnessDocument(
    job,
    {
      tests: {
        objective: search.goal.objectives[0],
        chosen: chosen.metrics,
        overfitting,
        permutations: comparePermutations(search, chosen.metrics, permuted),
        bootstrap: resampleRun(base.run, base.conventions, seed),
        neighbors: variants.filter((one): one is Variant<'neighbor'> => one.name === 'neighbor'),
        stresses: variants.filter((one): one is Variant<StressName> => one.name !== 'neighbor'),
      },
      permuted,
      chosen,
      trials: { total: search.trials.capacity, failed: results.failed },
      search,
      conventions: search.setup.conventions,
      seed,
    },
    assertions,
  );
}

/** Time of the first order of a run; undefined if it has none. */
function firstOrderOf({ journal }: RunResult): number | undefined {
  for (const { kind, time } of journal.events())
    if (kind === 'order.submitted') return Date.parse(time);
  return undefined;
}

/** The trials that a test counts: the trials of its search, and the neighbors of the best one. */
export function* trialsOf(
  { search: { job, results, axes } }: RobustnessPlan,
  { chosen }: Pick<RobustnessDocument, 'chosen'>,
): Generator<Pick<Trial, 'params'>> {
  yield* results.inOrder();
  yield* neighborsOf(job.strategy, chosen.params, axes);
}

async function testOverfitting(
  { results, setup }: Search,
  { signal, onProgress = () => {} }: RobustnessOptions,
): Promise<RobustnessTests['overfitting']> {
  const { ranked, sums } = results;
  if (ranked.length < 2) return 'one_trial';
  const { count, returns } = setup.blocks!;
  if (returns < 2 * count) return 'too_few_returns';
  return overfittingOf(sums!, ranked, setup.conventions.periods_per_year, async (share) => {
    onProgress('cross-validated trials', Math.floor(share * ranked.length), ranked.length);
    await nextTurn();
    signal?.throwIfAborted();
  });
}

async function permutedScores(
  { search, seed, permutations }: RobustnessPlan,
  runner: TrialRunner,
  { onProgress = () => {}, ...options }: RobustnessOptions,
): Promise<Float64Array> {
  if (permutations === 0) return new Float64Array(0);
  return searchPermutations(search, runner, {
    ...options,
    seed,
    permutations,
    onProgress: (done) => onProgress('permutations', done, permutations),
  });
}

function comparePermutations(
  { job, goal }: Search,
  chosen: TrialMetrics,
  permuted: Float64Array,
): PermutationTest | 'models' | 'no_permutations' | 'no_objective' {
  if (job.signals !== undefined) return 'models';
  const count = permuted.length;
  if (count === 0) return 'no_permutations';
  const score = scoreOf(chosen, goal);
  if (Number.isNaN(score)) return 'no_objective';
  const at_least_as_good = permuted.filter((value) => value >= score).length;
  const equal = permuted.filter((value) => value === score).length;
  return { count, at_least_as_good, equal, p: (1 + at_least_as_good) / (1 + count) };
}

function resampleRun(
  run: RunResult,
  conventions: Conventions,
  seed: number,
): RobustnessTests['bootstrap'] {
  const returns = returnsOf(sampleEquity(run, conventions.sampling));
  const years = daysOf(run) / conventions.year_days;
  const options = { conventions, years, resamples: RESAMPLES, seed };
  return bootstrap(returns, options) ?? 'too_few_returns';
}
