import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BacktestJob } from '../../backtest/job.ts';
import { scopeOf } from '../../backtest/ledger/earlier-trials.ts';
import { packTrials, trialKey, type ExecutedTrial } from '../../backtest/ledger/packed-trials.ts';
import { trialLock } from '../../backtest/ledger/trial-lock.ts';
import { writeRobustness } from '../../backtest/robustness/robustness-files.ts';
import { planRobustness, testRobustness } from '../../backtest/robustness/test-robustness.ts';
import { planSearch } from '../../backtest/search/plan-search.ts';
import { runSearch } from '../../backtest/search/run-search.ts';
import { finishSweep } from '../../backtest/search/sweep-document.ts';
import { withTrialPool } from '../../backtest/search/trial-pool.ts';
import type { StrategySource } from '../../backtest/strategy-source.ts';
import { walkForward } from '../../backtest/windows/walk-forward.ts';
import { walkForwardOutcome } from '../../backtest/windows/walk-forward-document.ts';
import { writeWalkForward } from '../../backtest/windows/walk-forward-files.ts';
import { ServiceError } from '../../base/errors.ts';
import { gzipFile } from '../../base/gzip-file.ts';
import { readChangedSpec } from '../../bots/hosted.ts';
import { hostedBot } from '../../bots/load-bot.ts';
import { signalsOver } from '../../bots/models/signals.ts';
import { prepare, strategySource } from '../../bots/prepare.ts';
import type { Bundle } from '../../bots/bundle.ts';
import type { Progress } from '../tasks/lifecycle.ts';
import type { OwnTrials, ReportedTrials, TrialCounts } from '../tasks/trial-entries.ts';
import type { AnalysisKind } from './analysis-kinds.ts';
import { searchOf, windowsOf } from './analysis-request.ts';
import type { AnalysisInput } from './start-analysis.ts';

export interface AnalysisWork {
  readonly kind: AnalysisKind;
  readonly document: unknown;
  /** Files of the models. */
  readonly files?: Bundle | undefined;
  readonly input: AnalysisInput;
  readonly catalogueDir: string;
  readonly timeoutMs: number;
  /** Number of threads that run trials. */
  readonly workers: number;
  /** Directory for the result files. */
  readonly directory: string;
}

export interface AnalysisDone {
  /** The document of the analysis, with at most `MAX_RESULTS` results of a sweep. */
  readonly result: object;
  readonly notes: readonly string[];
  readonly files: readonly string[];
}

export interface AnalysisPorts {
  readonly onProgress: (progress: Progress) => void;
  /** Records trials that have ended. */
  readonly record: (trials: ReportedTrials) => void;
  /** Counts the trials that were recorded before the task began, without its own. */
  readonly count: (own: OwnTrials) => Promise<TrialCounts>;
}

/** Limits the result to the size of one response; the result file has all rows. */
const MAX_RESULTS = 1000;
/** Memory of one run, as `strategy_memory_mb` by default; trials have no code of users. */
const MEMORY_MB = 512;
const COLUMN_MB = 256;
const PROGRESS_EVERY_MS = 200;

interface Prepared {
  readonly job: BacktestJob;
  readonly source: StrategySource;
}

/** @returns once each result file is in the directory, as `<name>.gz`. */
export async function doAnalysis(
  work: AnalysisWork,
  ports: AnalysisPorts,
  signal: AbortSignal,
): Promise<AnalysisDone> {
  const { document, files, input, catalogueDir, directory, kind } = work;
  const { from, to } = input;
  const bot = hostedBot(readChangedSpec(document, { from, to }, files));
  const { job: prepared, notes } = await prepare(bot, { catalogueDir, assertions: [] });
  const signals = await signalsOver(bot.models, prepared.instruments, signal);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const ready = { job: { ...prepared, signals }, source: strategySource(bot) };
  const done = await ANALYSES[kind](work, ready, throttled(ports), signal);
  for (const name of done.files) await gzipFile(join(directory, name));
  return { ...done, notes };
}

type Analyze = (
  work: AnalysisWork,
  prepared: Prepared,
  ports: AnalysisPorts,
  signal: AbortSignal,
) => Promise<Omit<AnalysisDone, 'notes'>>;

const ANALYSES: Readonly<Record<AnalysisKind, Analyze>> = {
  sweep,
  walk_forward: walk,
  robustness: test,
};

const limitsOf = ({ workers }: AnalysisWork) => ({
  workers,
  memoryMb: MEMORY_MB,
  columnMb: COLUMN_MB,
});

async function sweep(...[work, { job, source }, ports, signal]: Parameters<Analyze>) {
  const { directory, timeoutMs, kind, input } = work;
  const search = planSearch(job, searchOf(kind, input.analysis), timeoutMs);
  const { results, trials } = search;
  await withTrialPool(source, limitsOf(work), (pool) =>
    runSearch(search, pool, {
      signal,
      count: (ended) => ports.record(reportOf(job, ended)),
      onProgress: (done) => ports.onProgress({ done, total: trials.capacity }),
    }),
  );
  if (results.done === 0) throw allFailed(results.firstError);
  const { earlier, holdout } = await ports.count(ownTrials(job, results.inOrder()));
  const lock = { ...job.lock, trials: earlier };
  const document = await finishSweep({ ...search, job: { ...job, lock, holdout } }, directory);
  if (document.best === null && results.failed > 0) throw allFailed(results.firstError);
  return {
    result: { ...document, results: document.results.slice(0, MAX_RESULTS) },
    files: ['sweep.json', 'trials.csv', ...(document.best === null ? [] : ['report.html'])],
  };
}

async function walk(...[work, { job, source }, ports, signal]: Parameters<Analyze>) {
  const { kind, input, timeoutMs, directory } = work;
  const walked = await walkForward(job, source, {
    ...windowsOf(input.analysis),
    ...limitsOf(work),
    search: searchOf(kind, input.analysis),
    timeoutMs,
    signal,
    count: (window, ended) => ports.record(reportOf(window, ended)),
    onProgress: (done, total) => ports.onProgress({ done, total }),
  });
  const { earlier: trials, holdout } = await ports.count(ownTrials(job, []));
  const outcome = walkForwardOutcome(walked, [], { trials, holdout });
  const result = await writeWalkForward(directory, walked, outcome);
  return { result, files: result.files };
}

async function test(...[work, { job, source }, ports, signal]: Parameters<Analyze>) {
  const { kind, input, timeoutMs, directory } = work;
  const { seed = 1, blocks = 16, permutations } = input.analysis;
  const plan = planRobustness(
    job,
    { search: searchOf(kind, input.analysis), seed, blocks, permutations, assertions: [] },
    timeoutMs,
  );
  const document = await testRobustness(plan, source, {
    ...limitsOf(work),
    signal,
    count: (ended) => ports.record(reportOf(job, ended)),
    onProgress: (_phase, done, total) => ports.onProgress({ done, total }),
  });
  const { earlier, holdout } = await ports.count(ownTrials(job, plan.search.results.inOrder()));
  const result = { ...document, lock: { ...job.lock, trials: earlier }, holdout };
  await writeRobustness(directory, result);
  return { result, files: ['report.html', 'robustness.json'] };
}

function reportOf(job: BacktestJob, ended: readonly ExecutedTrial[]): ReportedTrials {
  const trials = new Map(ended.map(({ params, sharpe }) => [trialKey(params), sharpe]));
  return { lock: trialLock(job), scope: scopeOf(job), trials: packTrials(trials) };
}

function ownTrials(job: BacktestJob, own: Iterable<Pick<ExecutedTrial, 'params'>>): OwnTrials {
  const keys = Array.from(own, ({ params }) => trialKey(params));
  return { lock: trialLock(job), scope: scopeOf(job), keys, holdout: job.holdout };
}

function allFailed(first: string | undefined): ServiceError {
  return new ServiceError('strategy_failed', `every trial failed; the first error is: ${first}`, {
    remedy: 'Correct the cause, and start the search again.',
  });
}

/** Limits how often progress is reported, since trials take less than a millisecond. */
function throttled(ports: AnalysisPorts): AnalysisPorts {
  let reportedAt = -Infinity;
  return {
    ...ports,
    onProgress(progress) {
      const now = performance.now();
      if (now - reportedAt < PROGRESS_EVERY_MS && progress.done < progress.total) return;
      reportedAt = now;
      ports.onProgress(progress);
    },
  };
}
