import { join } from 'node:path';
import { deflatedSharpe } from '../deflated-sharpe.ts';
import type { DeflatedSharpe } from '../deflated-sharpe.ts';
import { execute } from '../execute.ts';
import { writeText } from '../write-text.ts';
import { renderSweepReport } from '../report/sweep-report.ts';
import { returnsOf, sampleEquity } from '../returns.ts';
import type { Conventions, Finding, Lock, Summary } from '../summary.ts';
import type { Axis } from './axes.ts';
import { type TrialCounts, whyNotDeflated } from './describe-trials.ts';
import type { Goal } from './goal.ts';
import type { Search } from './plan-search.ts';
import type { SearchMethod } from './search-method.ts';
import { barsOf, KEPT_SHARE, unselectedSharpe } from './pruning.ts';
import type { SkipReason } from './skipped-combinations.ts';
import { spanOf, sweepFindings } from './sweep-findings.ts';
import { trialLines } from './trials-csv.ts';
import type { TrialMetrics } from './trial-figures.ts';
import type { Trial } from './trial.ts';

/** `sweep.json`, and the document that `backtest sweep --json` prints. */
export interface SweepDocument {
  readonly schema: 'service-local/sweep/v1';
  readonly bot: Summary['bot'];
  readonly version: string;
  readonly lock: Lock;
  readonly window: Summary['window'];
  readonly conventions: Conventions;
  readonly search: SearchMethod & {
    /** Number of trials in a generation; absent for a grid, whose trials are independent of each other. */
    readonly generation_size?: number;
    readonly objectives: Goal['objectives'];
    readonly constraints: Goal['constraints'];
    /** Absent without pruning. */
    readonly pruning?: {
      /** Share of the trials that continue after each part of the bars but the last. */
      readonly kept: number;
      /** Number of bars in each part. */
      readonly bars: readonly number[];
    };
  };
  readonly axes: readonly Axis[];
  readonly trials: TrialCounts & {
    readonly skipped_because: readonly SkipReason[];
  };
  /** The first of the results. */
  readonly best: Ranked | null;
  /**
   * Correction of the Sharpe ratio of the best trial for the number of trials; null until all trials are
   * done, and if it is undefined.
   */
  readonly deflated_sharpe: DeflatedSharpe | null;
  readonly holdout?: Summary['holdout'];
  /** Finished trials that meet the constraints, best first, at most 50,000; `trials.csv` has all. */
  readonly results: readonly Ranked[];
  /** Doubts about the results of all trials. */
  readonly findings: readonly Finding[];
  /** sha256 of `trials.csv`. */
  readonly hashes: { readonly trials: string };
}

interface Ranked {
  readonly params: Trial['params'];
  readonly metrics: TrialMetrics;
  /** With several objectives: 1 for the Pareto front, 2 for the front of the other trials, and so on. */
  readonly front?: number;
}

/** Limits the document and the memory that its results take. */
const MAX_RANKED = 50_000;

/** Ranks the finished trials, corrects the best Sharpe ratio and writes the sweep's files. */
export async function finishSweep(search: Search, directory: string): Promise<SweepDocument> {
  const { job, axes, trials, results, setup, goal } = search;
  const hasFronts = goal.objectives.length > 1;
  const ranking = results.ranking(goal);
  const ranked = results.take(ranking, MAX_RANKED).map(({ params, metrics, front }): Ranked => ({
    params,
    metrics,
    ...(hasFronts && { front: front + 1 }),
  }));
  const table = await writeText(join(directory, 'trials.csv'), trialLines(search));
  const { from, to } = spanOf(job);
  const document: SweepDocument = {
    schema: 'service-local/sweep/v1',
    bot: job.bot,
    version: job.lock.spec,
    lock: job.lock,
    window: {
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      bars: job.instruments.reduce((sum, { bars }) => sum + bars.time.length, 0),
    },
    conventions: setup.conventions,
    search: describeSearch(search),
    axes,
    trials: {
      total: trials.capacity,
      done: results.done,
      failed: results.failed,
      pruned: results.pruned,
      excluded: results.ranked.length - ranking.order.length,
      skipped: trials.skipped.total,
      skipped_because: trials.skipped.reasons,
    },
    best: ranked[0] ?? null,
    deflated_sharpe: results.isComplete ? ((await deflateBest(search, ranked[0])) ?? null) : null,
    ...(job.holdout && { holdout: job.holdout }),
    results: ranked,
    findings: sweepFindings(job),
    hashes: { trials: table },
  };
  if (ranked.length > 0) {
    const report = renderSweepReport({
      bot: document.bot,
      version: document.version,
      window: document.window,
      currency: job.currency,
      trials: document.trials,
      ranked: ranking.order.length,
      objectives: goal.objectives,
      isSampled: search.method.kind !== 'grid',
      rows: ranked.map(({ params, metrics, front }) => ({
        params: Object.fromEntries(axes.map(({ name }) => [name, params[name]!])),
        metrics,
        front,
      })),
      deflated: document.deflated_sharpe ?? whyNotDeflated(document),
    });
    await writeText(join(directory, 'report.html'), [report]);
  }
  await writeText(join(directory, 'sweep.json'), [`${JSON.stringify(document, undefined, 2)}\n`]);
  return document;
}

function describeSearch({ method, goal, trials, setup, parts }: Search): SweepDocument['search'] {
  const { generationSize } = trials;
  return {
    ...method,
    ...(generationSize !== undefined && { generation_size: generationSize }),
    ...goal,
    ...(parts.length > 0 && {
      pruning: { kept: KEPT_SHARE, bars: [...parts, setup].map(barsOf) },
    }),
  };
}

/** Runs the best trial again, because the sweep does not keep the returns of its trials. */
async function deflateBest(
  search: Search,
  best: Ranked | undefined,
): Promise<DeflatedSharpe | undefined> {
  const { job, results, setup } = search;
  if (best === undefined || best.metrics.sharpe === null) return undefined;
  const { instruments, signals, config, conventions, timeoutMs } = setup;
  const request = { instruments, signals, config, strategy: job.strategy, params: best.params };
  const run = await (job.execute ?? execute)(request, { timeoutMs });
  const earlier = job.lock.trials;
  return deflatedSharpe(
    returnsOf(sampleEquity(run, conventions.sampling)),
    Array.from(results.ended, (index) => unselectedSharpe(search, index)),
    conventions.periods_per_year,
    // The ratios at the first rung belong to another period, so only their own variance is meaningful.
    earlier && results.lastRung > 0 ? { ...earlier, ...NO_SHARPES } : earlier,
  );
}

const NO_SHARPES = { sharpe_count: 0, sharpe_mean: null, sharpe_variance: null };
