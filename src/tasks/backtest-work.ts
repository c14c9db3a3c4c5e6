import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { join } from 'node:path';
import { createGzip } from 'node:zlib';
import { backtest } from '../backtest/backtest.ts';
import { RUN_FILES, writeRun } from '../backtest/files.ts';
import type { Summary } from '../backtest/summary.ts';
import { readChangedSpec, type SpecChanges } from '../bots/hosted.ts';
import { hostedBot } from '../bots/load.ts';
import { prepare } from '../bots/prepare.ts';
import type { Progress } from './lifecycle.ts';
import { refuseDrift, type KeptLock } from './verify-lock.ts';

/** A backtest as one thread tells another of it. */
export interface BacktestWork {
  readonly runId: string;
  /** As it was authored. */
  readonly document: unknown;
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

/** @returns what came of it, once each of its files is in the directory, as `<name>.gz`. */
export async function doBacktest(
  { runId, document, changes, locked, catalogueDir, timeoutMs, directory }: BacktestWork,
  onLoaded: () => void,
  onProgress: (progress: Progress) => void,
): Promise<BacktestDone> {
  const bot = hostedBot(readChangedSpec(document, changes));
  const { job, notes } = await prepare(bot, { catalogueDir, assertions: [] });
  onLoaded();
  if (locked !== undefined) refuseDrift(locked, job.lock);
  let toldAt = -Infinity;
  const outcome = await backtest(job, {
    runId,
    timeoutMs,
    onProgress(done, total) {
      const now = performance.now();
      if (now - toldAt < PROGRESS_EVERY_MS && done < total) return;
      toldAt = now;
      onProgress({ done, total });
    },
  });
  const { summary } = await writeRun(directory, job, outcome);
  for (const name of RUN_FILES) {
    const path = join(directory, name);
    await pipeline(createReadStream(path), createGzip(), createWriteStream(`${path}.gz`));
  }
  return { summary, notes, files: RUN_FILES };
}
