import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import { removeAbandoned, tryToWriteInto } from '../base/atomic-file.ts';
import type { RunResult } from '../engine/run-result.ts';
import { makeDirectory } from '../base/make-directory.ts';
import type { Outcome } from './backtest.ts';
import type { BacktestJob } from './job.ts';
import { exitReasonsOf } from './report/exit-reasons.ts';
import { renderReport } from './report/report.ts';
import type { Summary } from './summary.ts';
import { drawdownsOf } from './returns.ts';
import { writeTrades } from './trade-files.ts';
import { notWritable, writeText } from './write-text.ts';
import { writeEquity } from './equity-files.ts';
import { writeEquityInThread } from './equity-thread.ts';

/** Number of steps up to which `equity.csv` is always written, about 13 MB of text. */
const MOST_CSV_STEPS = 200_000;

/** Number of steps from which writing the equity takes longer than starting a thread for it. */
const THREAD_STEPS = 200_000;

export interface RunFiles {
  readonly directory: string;
  readonly report: string;
  readonly summary: Summary;
}

/**
 * Writes `events.ndjson`, `trades.csv`, `trades.parquet`, `equity.parquet`, `equity.csv` unless the
 * run is long, `report.html` and finally `summary.json`. Each file appears whole or not at all.
 *
 * @param options.hasEquityCsv writes `equity.csv` however long the run is
 * @throws ServiceError `output_not_writable`
 */
export async function writeRun(
  directory: string,
  job: BacktestJob,
  { result, indicators, benchmark, summary: unhashed }: Outcome,
  options: { readonly hasEquityCsv?: boolean } = {},
): Promise<RunFiles> {
  const path = (name: string): string => join(directory, name);
  const { files, hashes, drawdown } = await writeTables(directory, result, options);
  const summary: Summary = {
    ...unhashed,
    files: [...files, 'report.html', 'summary.json'].toSorted(),
    hashes,
  };
  const { instruments, currency } = job;
  const report = renderReport({
    summary,
    result,
    drawdown,
    instruments,
    indicators,
    currency,
    benchmark: benchmark.equity,
    exitReasons: exitReasonsOf(
      result.journal.events(),
      result.trades,
      job.config.closesAtEnd ? { reason: 'run_end', times: [result.time.at(-1)!] } : undefined,
    ),
  });
  await writeText(path('report.html'), [report]);
  await writeText(path('summary.json'), [`${JSON.stringify(summary, undefined, 2)}\n`]);
  return { directory, report: path('report.html'), summary };
}

export interface RunTables extends Pick<Summary, 'files' | 'hashes'> {
  /** By step, at least −1; see `drawdownsOf`. */
  readonly drawdown: Float64Array;
}

/**
 * Writes `events.ndjson`, the trades as CSV and Parquet, `equity.parquet`, and `equity.csv` unless the
 * run is long.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeTables(
  directory: string,
  result: RunResult,
  options: { readonly hasEquityCsv?: boolean } = {},
): Promise<RunTables> {
  // The texts of millions of lines are garbage at once, but V8 lets the heap grow to a multiple of
  // the live objects before it collects them. The flag applies to all threads, so it is not set in
  // a thread of a server, whose other threads do other work.
  if (isMainThread) setFlagsFromString('--heap-growing-percent=30');
  const path = (name: string): string => join(directory, name);
  const { time, equity, initialCash } = result;
  const drawdown = drawdownsOf(equity, initialCash);
  for (let i = 0; i < drawdown.length; i++) drawdown[i] = Math.max(-1, drawdown[i]!);
  const hasCsv = options.hasEquityCsv === true || equity.length <= MOST_CSV_STEPS;
  // A file of an earlier run in this directory would contradict the other files.
  if (!hasCsv) await removeOldResult(path('equity.csv'));
  const files = { directory, curve: { time, equity, drawdown }, hasCsv };
  const [equityHash, hashes] = await Promise.all([
    equity.length < THREAD_STEPS ? writeEquity(files) : writeEquityInThread(files),
    writeEventsAndTrades(directory, result),
  ]);
  return {
    files: [
      ...(hasCsv ? ['equity.csv'] : []),
      'equity.parquet',
      'events.ndjson',
      'trades.csv',
      'trades.parquet',
    ],
    hashes: { ...hashes, equity: equityHash },
    drawdown,
  };
}

async function writeEventsAndTrades(
  directory: string,
  result: RunResult,
): Promise<Pick<Summary['hashes'], 'events' | 'trades'>> {
  return {
    events: await writeText(join(directory, 'events.ndjson'), eventLines(result)),
    trades: await writeTrades(directory, result),
  };
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
    const remedy = 'Choose another directory with --out, or make this one writable.';
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

function* eventLines({ journal }: RunResult): Generator<string> {
  for (const event of journal.events()) yield `${JSON.stringify(event)}\n`;
}
