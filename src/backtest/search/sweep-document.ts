import { join } from 'node:path';
import { DAY } from '../../base/durations.ts';
import { deflatedSharpe } from '../deflated-sharpe.ts';
import type { DeflatedSharpe } from '../deflated-sharpe.ts';
import { execute } from '../execute.ts';
import { writeText } from '../write-text.ts';
import { windowBeyondData } from '../data-findings.ts';
import { outsideFinding, shortWindow } from '../findings.ts';
import { renderSweepReport } from '../report/sweep-report.ts';
import { returnsOf, sampleEquity } from '../returns.ts';
import type { Conventions, Finding, Lock, Summary } from '../summary.ts';
import type { Axis } from './grid.ts';
import type { Search } from './plan-search.ts';
import { trialLines } from './trial-log.ts';
import type { Trial, TrialMetrics } from './trial.ts';

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

/** Ranks the finished trials, corrects the best Sharpe ratio and writes the sweep's files. */
export async function finishSweep(search: Search, directory: string): Promise<SweepDocument> {
  const { job, axes, trials, results, setup } = search;
  const ranked = results
    .best(MAX_RANKED)
    .map(({ params, metrics }): Ranked => ({ params, metrics }));
  const table = await writeText(join(directory, 'trials.csv'), trialLines(results));
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
    conventions: setup.conventions,
    axes,
    trials: {
      total: trials.count,
      done: results.done,
      failed: results.failed,
      skipped: trials.skipped,
    },
    best: ranked[0] ?? null,
    deflated_sharpe: results.isComplete ? ((await deflateBest(search, ranked[0])) ?? null) : null,
    results: ranked,
    findings: [
      windowBeyondData(job.instruments),
      shortWindow((to - from) / DAY),
      outsideFinding(job.lock.outside),
    ].filter((finding) => finding !== undefined),
    hashes: { trials: table },
  };
  if (ranked.length > 0) {
    const report = renderSweepReport({
      bot: document.bot,
      version: document.version,
      window: document.window,
      currency: job.currency,
      finished: results.done - results.failed,
      rows: ranked.map(({ params, metrics }) => ({
        params: Object.fromEntries(axes.map(({ name }) => [name, params[name]!])),
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
  { job, results, setup: { instruments, signals, config, conventions, timeoutMs } }: Search,
  best: Ranked | undefined,
): Promise<DeflatedSharpe | undefined> {
  if (best === undefined || best.metrics.sharpe === null) return undefined;
  const setup = { instruments, signals, config, strategy: job.strategy, params: best.params };
  const run = await (job.execute ?? execute)(setup, { timeoutMs });
  return deflatedSharpe(
    returnsOf(sampleEquity(run, conventions.sampling)),
    // Failed trials count as trials, too.
    results.sharpes(),
    conventions.periods_per_year,
    job.lock.trials,
  );
}
