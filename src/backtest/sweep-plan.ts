import { join } from 'node:path';
import { packageVersion } from '../base/package-version.ts';
import { mergeTimes } from '../engine/steps.ts';
import { DAY } from '../base/durations.ts';
import { deflatedSharpe } from './deflated-sharpe.ts';
import type { DeflatedSharpe } from './deflated-sharpe.ts';
import { execute } from './execute.ts';
import { writeText } from './run-files.ts';
import { windowBeyondData } from './data-findings.ts';
import { outsideFinding, shortWindow } from './findings.ts';
import { axesOf, gridOf, type Grid } from './grid.ts';
import type { Axis, AxisText } from './grid.ts';
import type { BacktestJob } from './job.ts';
import { canonicalDigest } from './lock.ts';
import { renderSweepReport } from './report/sweep-report.ts';
import { conventionsFor } from './statistics.ts';
import { returnsOf, sampleEquity } from './returns.ts';
import type { Conventions, Finding, Lock, Summary } from './summary.ts';
import { TrialLog, trialLines } from './sweep-files.ts';
import type { TrialResults } from './trial-results.ts';
import type { Trial, TrialMetrics, TrialSetup } from './trial.ts';

/** `sweep.json`, and the document that `backtest sweep --json` prints. */
export interface SweepDocument {
  readonly schema: 'service-local/sweep/v1';
  readonly bot: Summary['bot'];
  readonly version: string;
  readonly lock: Lock;
  readonly window: Summary['window'];
  readonly conventions: Conventions;
  readonly axes: readonly Axis[];
  readonly trials: {
    readonly total: number;
    readonly done: number;
    readonly failed: number;
    /** Combinations that the strategy's own check rejects. */
    readonly skipped: number;
  };
  /** The trial with the highest Sharpe ratio. */
  readonly best: Ranked | null;
  /**
   * Correction of the best Sharpe ratio for the number of trials; null until all trials are done, and
   * if it is undefined.
   */
  readonly deflated_sharpe: DeflatedSharpe | null;
  /** Finished trials, highest Sharpe ratio first, at most 50,000; `trials.csv` has all. */
  readonly results: readonly Ranked[];
  /** Doubts about the results of all trials. */
  readonly findings: readonly Finding[];
  /** sha256 of `trials.csv`. */
  readonly hashes: { readonly trials: string };
}

interface Ranked {
  readonly params: Trial['params'];
  readonly metrics: TrialMetrics;
}

/** Limits the document and the memory that its results take. */
const MAX_RANKED = 50_000;

export interface SweepPlan {
  readonly grid: Grid;
  readonly axes: readonly Axis[];
  readonly setup: TrialSetup;
  /** Identifies the sweep by spec, data, strategy, engine, grid and package version. */
  readonly digest: string;
  /** Opens the log of the sweep, and adds its trials to the results. */
  open(directory: string, results: TrialResults): TrialLog;
}

export function planSweep(
  job: BacktestJob,
  given: readonly AxisText[],
  timeoutMs: number,
): SweepPlan {
  const axes = axesOf(job.strategy, given);
  const grid = gridOf(job.strategy, job.params, axes);
  const { instruments, signals, config, barMs } = job;
  const conventions = conventionsFor(mergeTimes(instruments.map(({ bars }) => bars)), { barMs });
  const digest = canonicalDigest({ lock: job.lock.digest, axes, package: packageVersion() });
  return {
    grid,
    axes,
    setup: {
      instruments: instruments.map(({ symbol, bars, warmUp }) => ({ symbol, bars, warmUp })),
      signals,
      config,
      conventions,
      timeoutMs,
    },
    digest,
    open: (directory, results) => TrialLog.open(directory, digest, results),
  };
}

/** Ranks the finished trials, corrects the best Sharpe ratio and writes the sweep's files. */
export async function finishSweep(
  plan: SweepPlan,
  job: BacktestJob,
  results: TrialResults,
  directory: string,
): Promise<SweepDocument> {
  const ranked = results
    .best(MAX_RANKED)
    .map(({ params, metrics }): Ranked => ({ params, metrics }));
  const trials = await writeText(join(directory, 'trials.csv'), trialLines(results));
  const times = job.instruments.map(({ bars }) => bars.time);
  const from = Math.min(...times.map((time) => time[0]!));
  const to = Math.max(...times.map((time) => time.at(-1)!));
  const document: SweepDocument = {
    schema: 'service-local/sweep/v1',
    bot: job.bot,
    version: job.lock.spec,
    lock: job.lock,
    window: {
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      bars: times.reduce((sum, { length }) => sum + length, 0),
    },
    conventions: plan.setup.conventions,
    axes: plan.axes,
    trials: {
      total: plan.grid.count,
      done: results.done,
      failed: results.failed,
      skipped: plan.grid.skipped,
    },
    best: ranked[0] ?? null,
    deflated_sharpe: results.isComplete
      ? ((await deflateBest(plan, job, ranked[0], results)) ?? null)
      : null,
    results: ranked,
    findings: [
      windowBeyondData(job.instruments),
      shortWindow((to - from) / DAY),
      outsideFinding(job.lock.outside),
    ].filter((finding) => finding !== undefined),
    hashes: { trials },
  };
  if (ranked.length > 0) {
    const report = renderSweepReport({
      bot: document.bot,
      version: document.version,
      window: document.window,
      currency: job.currency,
      finished: results.done - results.failed,
      rows: ranked.map(({ params, metrics }) => ({
        params: Object.fromEntries(plan.axes.map(({ name }) => [name, params[name]!])),
        metrics,
      })),
      deflated: document.deflated_sharpe ?? undefined,
    });
    await writeText(join(directory, 'report.html'), [report]);
  }
  await writeText(join(directory, 'sweep.json'), [`${JSON.stringify(document, undefined, 2)}\n`]);
  return document;
}

/** Runs the best trial again, because the sweep does not keep the returns of its trials. */
async function deflateBest(
  plan: SweepPlan,
  job: BacktestJob,
  best: Ranked | undefined,
  results: TrialResults,
): Promise<DeflatedSharpe | undefined> {
  if (best === undefined || best.metrics.sharpe === null) return undefined;
  const { instruments, signals, config, conventions, timeoutMs } = plan.setup;
  const setup = { instruments, signals, config, strategy: job.strategy, params: best.params };
  const run = await (job.execute ?? execute)(setup, { timeoutMs });
  return deflatedSharpe(
    returnsOf(sampleEquity(run, conventions.sampling)),
    // Failed trials count as trials, too.
    results.sharpes(),
    conventions.periods_per_year,
  );
}
