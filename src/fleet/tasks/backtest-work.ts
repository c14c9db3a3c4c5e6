import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { backtest, type Outcome } from '../../backtest/backtest.ts';
import type { FailedRun } from '../../backtest/execute.ts';
import { scopeOf } from '../../backtest/ledger/earlier-trials.ts';
import { trialKey } from '../../backtest/ledger/packed-trials.ts';
import { trialLock } from '../../backtest/ledger/trial-lock.ts';
import { writeLog, writeRun } from '../../backtest/run-files.ts';
import type { BacktestJob } from '../../backtest/job.ts';
import type { Summary } from '../../backtest/summary.ts';
import type { Bundle } from '../../bots/bundle.ts';
import { readChangedSpec, type SpecChanges } from '../../bots/hosted.ts';
import { prepare } from '../../bots/prepare.ts';
import { mergeTimes } from '../../engine/steps.ts';
import { openHosted, takeAllSteps, type CodeLimits } from '../../trading/sandbox/hosted-run.ts';
import { gzipFile } from '../../base/gzip-file.ts';
import type { Progress } from './lifecycle.ts';
import type { TaskTrial, TrialCounts } from './trial-entries.ts';
import { refuseDrift, type KeptLock } from './verify-lock.ts';

export interface BacktestWork {
  readonly runId: string;
  /** The spec as its author wrote it. */
  readonly document: unknown;
  /** Custom code and models. */
  readonly files?: Bundle | undefined;
  readonly customCode?: CodeLimits | undefined;
  readonly changes: SpecChanges;
  /** Lock that the backtest must match, if it is verified. */
  readonly locked?: KeptLock | undefined;
  /** Includes the holdout of the spec in the run. */
  readonly opensHoldout?: boolean | undefined;
  /** Hash of `files` if they replace the files of the version; null for no files. */
  readonly unsaved?: string | null | undefined;
  readonly catalogueDir: string;
  readonly timeoutMs: number;
  /** Directory for the result files. */
  readonly directory: string;
}

export interface BacktestDone {
  readonly summary: Summary;
  /** Notes of `Prepared`. */
  readonly notes: readonly string[];
  readonly files: readonly string[];
}

export interface BacktestPorts {
  readonly onProgress: (progress: Progress) => void;
  /** Called once, before the first bar. */
  readonly count: (trial: TaskTrial) => Promise<TrialCounts>;
  /** Called before an error of the strategy is thrown, with the names of the files to keep. */
  readonly onFailedFiles: (names: readonly string[]) => void;
  /** Called instead of `onFailedFiles` if these files cannot be written. */
  readonly onLostFiles: (cause: unknown) => void;
}

const PROGRESS_EVERY_MS = 200;

/**
 * @param signal ends the process of a custom strategy.
 * @returns once each result file is in the directory, as `<name>.gz`.
 */
export async function doBacktest(
  work: BacktestWork,
  { onProgress, count, onFailedFiles, onLostFiles }: BacktestPorts,
  signal: AbortSignal,
): Promise<BacktestDone> {
  const { runId, document, files, customCode, changes, locked, timeoutMs } = work;
  const run = await openHosted(readChangedSpec(document, changes, files), customCode, signal);
  try {
    const { bot } = run;
    const { catalogueDir, opensHoldout, unsaved } = work;
    const prepared = await prepare(bot, { catalogueDir, assertions: [], opensHoldout });
    if (locked !== undefined) refuseDrift(locked, prepared.job.lock);
    const counts = await count(trialOf(prepared.job));
    const lock = { ...prepared.job.lock, trials: counts.earlier };
    const job = { ...prepared.job, lock, holdout: counts.holdout, unsaved };
    let reportedAt = -Infinity;
    const report = (done: number, total: number): void => {
      const now = performance.now();
      if (now - reportedAt < PROGRESS_EVERY_MS && done < total) return;
      reportedAt = now;
      onProgress({ done, total });
    };
    const total = mergeTimes(job.instruments.map(({ bars }) => bars)).length;
    await takeAllSteps(run, job.instruments, (done) => report(done, total));
    let failed: FailedRun | undefined;
    const outcome = await backtest(
      { ...job, signals: run.signals },
      {
        runId,
        timeoutMs,
        // With models or custom code, nearly all the time is spent before the engine runs.
        onProgress: run.needsSteps ? undefined : report,
        onFailure: (found) => (failed = found),
      },
    ).catch(async (error: unknown) => {
      if (failed !== undefined) {
        await fileLog(work.directory, failed.result).then(onFailedFiles, onLostFiles);
      }
      throw error;
    });
    return { ...(await fileRun(work.directory, job, outcome)), notes: prepared.notes };
  } finally {
    await run.close();
  }
}

function trialOf(job: BacktestJob): TaskTrial {
  const { params, holdout } = job;
  return { lock: trialLock(job), key: trialKey(params), scope: scopeOf(job), holdout };
}

/** Writes the log of a failed run as `<name>.gz`. @returns the names of the files */
async function fileLog(directory: string, result: FailedRun['result']): Promise<string[]> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = await writeLog(directory, result);
  for (const name of names) await gzipFile(join(directory, name));
  return names;
}

/** Writes the files of a run, each as `<name>.gz`. */
export async function fileRun(
  directory: string,
  job: BacktestJob,
  outcome: Outcome,
): Promise<Pick<BacktestDone, 'summary' | 'files'>> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const { summary } = await writeRun(directory, job, outcome);
  for (const name of summary.files) await gzipFile(join(directory, name));
  return { summary, files: summary.files };
}
