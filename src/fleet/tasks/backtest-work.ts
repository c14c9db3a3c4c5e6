import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { backtest, type Outcome } from '../../backtest/backtest.ts';
import { RUN_FILES, writeRun } from '../../backtest/files.ts';
import type { BacktestJob } from '../../backtest/job.ts';
import type { Summary } from '../../backtest/summary.ts';
import type { Bundle } from '../../bots/bundle.ts';
import { readChangedSpec, type SpecChanges } from '../../bots/hosted.ts';
import { prepare } from '../../bots/prepare.ts';
import { mergeTimes } from '../../engine/steps.ts';
import { openHosted, takeAll, type CodeLimits } from '../../trading/sandbox/hosted.ts';
import { gzipFile } from '../../base/gzip-file.ts';
import type { Progress } from './lifecycle.ts';
import { refuseDrift, type KeptLock } from './verify-lock.ts';

/** A backtest as one thread tells another of it. */
export interface BacktestWork {
  readonly runId: string;
  /** As it was authored. */
  readonly document: unknown;
  /** Of a strategy that came with it, and what that may take. */
  readonly files?: Bundle | undefined;
  readonly customCode?: CodeLimits | undefined;
  readonly changes: SpecChanges;
  /** What it must be made of, where that is to be verified. */
  readonly locked?: KeptLock | undefined;
  readonly catalogueDir: string;
  readonly timeoutMs: number;
  /** For its files. */
  readonly directory: string;
}

export interface BacktestDone {
  readonly summary: Summary;
  /** See `Prepared`. */
  readonly notes: readonly string[];
  /** The names of its files. */
  readonly files: readonly string[];
}

/** Often enough for whoever watches. */
const PROGRESS_EVERY_MS = 200;

/**
 * @param signal ends the process of a strategy that came with the bot.
 * @returns what came of it, once each of its files is in the directory, as `<name>.gz`.
 */
export async function doBacktest(
  work: BacktestWork,
  onLoaded: () => void,
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<BacktestDone> {
  const { runId, document, files, customCode, changes, locked, timeoutMs } = work;
  const run = await openHosted(readChangedSpec(document, changes, files), customCode, signal);
  try {
    const { bot } = run;
    const { job, notes } = await prepare(bot, { catalogueDir: work.catalogueDir, assertions: [] });
    onLoaded();
    if (locked !== undefined) refuseDrift(locked, job.lock);
    let toldAt = -Infinity;
    const tell = (done: number, total: number): void => {
      const now = performance.now();
      if (now - toldAt < PROGRESS_EVERY_MS && done < total) return;
      toldAt = now;
      onProgress({ done, total });
    };
    const total = mergeTimes(job.instruments.map(({ bars }) => bars)).length;
    await takeAll(run, job.instruments, (done) => tell(done, total));
    const outcome = await backtest(
      { ...job, signals: run.signals },
      {
        runId,
        timeoutMs,
        // What is left after models and process are done takes no time.
        onProgress: run.watches ? undefined : tell,
      },
    );
    return { ...(await fileRun(work.directory, job, outcome)), notes };
  } finally {
    await run.close();
  }
}

/** Writes the files of a run, each as `<name>.gz`. */
export async function fileRun(
  directory: string,
  job: BacktestJob,
  outcome: Outcome,
): Promise<Pick<BacktestDone, 'summary' | 'files'>> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const { summary } = await writeRun(directory, job, outcome);
  for (const name of RUN_FILES) {
    await gzipFile(join(directory, name));
  }
  return { summary, files: RUN_FILES };
}
