import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import { removeAbandoned, tryToWriteInto } from '../base/atomic-file.ts';
import { forEachStep } from '../engine/order-steps.ts';
import type { RunResult } from '../engine/run-result.ts';
import { makeDirectory } from '../base/make-directory.ts';
import type { Outcome } from './backtest.ts';
import type { BacktestJob } from './job.ts';
import { LOG_FILE, logLine } from './log-lines.ts';
import { ExitReasons, type Closing, type ExitReason } from './report/exit-reasons.ts';
import { beginReport } from './report/report.ts';
import type { Summary } from './summary.ts';
import { drawdownsOf } from './returns.ts';
import { FileThread } from './file-thread.ts';
import type { OnLines } from './run-tables.ts';
import { tradeTable } from './trade-files.ts';
import { notWritable, writeText } from './write-text.ts';

/** Number of steps up to which `equity.csv` is always written, about 13 MB of text. */
const MOST_CSV_STEPS = 200_000;

export interface RunFiles {
  readonly directory: string;
  readonly report: string;
  readonly summary: Summary;
}

interface WriteOptions {
  /** Writes `equity.csv` even for a long run. */
  readonly hasEquityCsv?: boolean;
  /** Writes the tables; by default, a new thread that ends afterward. */
  readonly thread?: FileThread | undefined;
  readonly onProgress?: OnLines | undefined;
}

/**
 * Writes `events.ndjson`, `trades.csv`, `trades.parquet`, `equity.parquet`, `equity.csv` unless the
 * run is long, `log.txt` if the strategy logged anything, `report.html` and finally `summary.json`.
 * Each file appears whole or not at all.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeRun(
  directory: string,
  job: BacktestJob,
  { result, indicators, benchmark, summary: unhashed }: Outcome,
  options: WriteOptions = {},
): Promise<RunFiles> {
  const path = (name: string): string => join(directory, name);
  const tables = await beginTables(directory, result, {
    ...options,
    closing: job.config.closesAtEnd
      ? { reason: 'run_end', times: [result.time.at(-1)!] }
      : undefined,
  });
  const logFiles = await writeLog(directory, result);
  const files = [...tables.files, ...logFiles, 'report.html', 'summary.json'].toSorted();
  const { instruments, currency } = job;
  const finishReport = beginReport({
    summary: { ...unhashed, files },
    result,
    drawdown: tables.drawdown,
    instruments,
    indicators,
    calendar: job.config.calendar,
    currency,
    benchmark: benchmark.equity,
    exitReasons: tables.exitReasons,
  });
  const summary: Summary = { ...unhashed, files, hashes: await tables.hashes };
  await writeText(path('report.html'), [finishReport(summary.hashes)]);
  await writeText(path('summary.json'), [`${JSON.stringify(summary, undefined, 2)}\n`]);
  return { directory, report: path('report.html'), summary };
}

/**
 * Writes `log.txt`, or removes the one of an earlier run if the strategy logged nothing.
 * @returns the names of the written files.
 * @throws ServiceError `output_not_writable`
 */
export async function writeLog(
  directory: string,
  { log = [] }: Pick<RunResult, 'log'>,
): Promise<string[]> {
  const path = join(directory, LOG_FILE);
  if (log.length > 0)
    await writeText(
      path,
      log.map((line) => `${logLine(line)}\n`),
    );
  // Otherwise, the log of an earlier run in this directory would look like the log of this run.
  else await removeOldResult(path);
  return log.length > 0 ? [LOG_FILE] : [];
}

export interface RunTables extends Pick<Summary, 'files'> {
  /** Available when all files are complete. */
  readonly hashes: Promise<Summary['hashes']>;
  /** By step, at least −1; see `drawdownsOf`. */
  readonly drawdown: Float64Array;
  /** Exit reasons, keyed by the id of the trade. */
  readonly exitReasons: ReadonlyMap<number, ExitReason>;
}

/**
 * Begins to write `events.ndjson`, the trades as CSV and Parquet, `equity.parquet`, and `equity.csv`
 * unless the run is long.
 *
 * @throws ServiceError `output_not_writable`, also as `hashes`
 */
export async function beginTables(
  directory: string,
  result: RunResult,
  options: WriteOptions & { readonly closing?: Closing | undefined },
): Promise<RunTables> {
  // The texts of millions of lines are garbage at once, but V8 lets the heap grow to a multiple of
  // the live objects before it collects them. The flag applies to all threads, so it is not set in
  // a thread of a server, whose other threads do other work.
  if (isMainThread) setFlagsFromString('--heap-growing-percent=30');
  const { time, equity, initialCash, journal } = result;
  const hasCsv = options.hasEquityCsv === true || equity.length <= MOST_CSV_STEPS;
  // A file of an earlier run in this directory would contradict the other files.
  if (!hasCsv) await removeOldResult(join(directory, 'equity.csv'));
  const drawdown = shared(drawdownsOf(equity, initialCash));
  for (let i = 0; i < drawdown.length; i++) if (drawdown[i]! < -1) drawdown[i] = -1;
  const thread = options.thread ?? new FileThread();
  const curve = { time, equity: shared(equity), drawdown };
  const trades = tradeTable(result);
  const hashes = thread
    .write({ directory, curve, hasCsv, journal: journal.data, trades }, options.onProgress)
    .finally(() => (options.thread === undefined ? thread.end() : undefined));
  // The caller awaits it later, perhaps after an error of its own.
  hashes.catch(() => {});
  const exitReasons = new ExitReasons(options.closing);
  forEachStep(journal, (step) => exitReasons.add(step));
  return {
    files: [
      ...(hasCsv ? ['equity.csv'] : []),
      'equity.parquet',
      'events.ndjson',
      'trades.csv',
      'trades.parquet',
    ],
    hashes,
    drawdown,
    exitReasons: exitReasons.of(result.trades),
  };
}

/** Copies a column into memory that another thread can read, since a message would copy it twice. */
function shared(column: Float64Array): Float64Array {
  const copy = new Float64Array(new SharedArrayBuffer(column.byteLength));
  copy.set(column);
  return copy;
}

/**
 * Creates the directory, removes temporary files of dead processes and tries to write, so that a run
 * whose results cannot be stored fails before it starts.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function prepareDirectory(directory: string): Promise<void> {
  try {
    makeDirectory(directory);
    // Removed first, because these files may be what fills the disk.
    await removeAbandoned(directory);
    await tryToWriteInto(directory);
  } catch (error) {
    const remedy = 'Choose another directory, or make this one writable.';
    throw notWritable(directory, error, remedy);
  }
}

/**
 * Removes the result of an earlier run, which could be mistaken for the result of this one if this one
 * fails. Also checks that the directory is writable.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function removeOldResult(path: string): Promise<void> {
  try {
    await tryToWriteInto(dirname(path));
    await rm(path, { force: true });
  } catch (error) {
    throw notWritable(path, error);
  }
}
