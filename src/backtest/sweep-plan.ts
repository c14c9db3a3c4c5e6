import { createHash } from 'node:crypto';
import { join } from 'node:path';
import canonicalize from 'canonicalize';
import { packageVersion } from '../base/package-version.ts';
import { mergeTimes } from '../engine/steps.ts';
import { DAY } from '../base/durations.ts';
import { deflatedSharpe } from './deflated-sharpe.ts';
import type { DeflatedSharpe } from './deflated-sharpe.ts';
import { execute } from './execute.ts';
import { writeText } from './run-files.ts';
import { windowBeyondData } from './data-findings.ts';
import { outsideFinding, shortWindow } from './findings.ts';
import { axesOf, gridOf } from './grid.ts';
import type { Axis, AxisText } from './grid.ts';
import type { BacktestJob } from './job.ts';
import { renderSweepReport } from './report/sweep-report.ts';
import { conventionsFor } from './statistics.ts';
import { returnsOf, sampleEquity } from './returns.ts';
import type { Conventions, Finding, Lock, Summary } from './summary.ts';
import { TrialLog, trialLines } from './sweep-files.ts';
import type { Trial, TrialMetrics, TrialResult, TrialSetup } from './trial.ts';

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
  /** Every finished trial, highest Sharpe ratio first. */
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

export interface SweepPlan {
  readonly trials: readonly Trial[];
  readonly skipped: number;
  readonly axes: readonly Axis[];
  readonly setup: TrialSetup;
  /** Identifies the sweep by spec, data, strategy, engine, grid and package version. */
  readonly digest: string;
  open(directory: string): TrialLog;
}

export function planSweep(
  job: BacktestJob,
  given: readonly AxisText[],
  timeoutMs: number,
): SweepPlan {
  const axes = axesOf(job.strategy, given);
  const { trials, skipped } = gridOf(job.strategy, job.params, axes);
  const { instruments, signals, config, barMs } = job;
  const conventions = conventionsFor(mergeTimes(instruments.map(({ bars }) => bars)), { barMs });
  const identity = canonicalize({ lock: job.lock.digest, axes, package: packageVersion() })!;
  const digest = createHash('sha256').update(identity).digest('hex');
  return {
    trials,
    skipped,
    axes,
    setup: {
      instruments: instruments.map(({ symbol, bars, warmUp }) => ({ symbol, bars, warmUp })),
      signals,
      config,
      conventions,
      timeoutMs,
    },
    digest,
    open: (directory) => TrialLog.open(directory, digest, trials),
  };
}

/** Ranks the finished trials, corrects the best Sharpe ratio and writes the sweep's files. */
export async function finishSweep(
  plan: SweepPlan,
  job: BacktestJob,
  results: readonly TrialResult[],
  directory: string,
): Promise<SweepDocument> {
  const inOrder = results.toSorted((a, b) => a.index - b.index);
  const ranked = inOrder
    .filter((result) => 'metrics' in result)
    .map(({ params, metrics }): Ranked => ({ params, metrics }))
    .sort((a, b) => (b.metrics.sharpe ?? -Infinity) - (a.metrics.sharpe ?? -Infinity) || 0);
  const isComplete = results.length === plan.trials.length;
  const trials = await writeText(join(directory, 'trials.csv'), trialLines(inOrder));
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
      total: plan.trials.length,
      done: results.length,
      failed: results.length - ranked.length,
      skipped: plan.skipped,
    },
    best: ranked[0] ?? null,
    deflated_sharpe: isComplete ? ((await deflateBest(plan, job, ranked, results)) ?? null) : null,
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
  ranked: readonly Ranked[],
  results: readonly TrialResult[],
): Promise<DeflatedSharpe | undefined> {
  const best = ranked[0];
  if (best === undefined || best.metrics.sharpe === null) return undefined;
  const { instruments, signals, config, conventions, timeoutMs } = plan.setup;
  const setup = { instruments, signals, config, strategy: job.strategy, params: best.params };
  const run = await (job.execute ?? execute)(setup, { timeoutMs });
  return deflatedSharpe(
    returnsOf(sampleEquity(run, conventions.sampling)),
    // Failed trials count as trials, too.
    results.map((result) => ('metrics' in result ? result.metrics.sharpe : null)),
    conventions.periods_per_year,
  );
}
