import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import { removeAbandoned, tryToWriteInto } from '../base/atomic-file.ts';
import type { RunResult } from '../engine/run-result.ts';
import { makeDirectory } from '../base/make-directory.ts';
import type { Outcome } from './backtest.ts';
import type { BacktestJob } from './job.ts';
import { ExitReasons, type Closing, type ExitReason } from './report/exit-reasons.ts';
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
  const { files, hashes, drawdown, exitReasons } = await writeTables(directory, result, {
    ...options,
    closing: job.config.closesAtEnd
      ? { reason: 'run_end', times: [result.time.at(-1)!] }
      : undefined,
  });
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
    exitReasons,
  });
  await writeText(path('report.html'), [report]);
  await writeText(path('summary.json'), [`${JSON.stringify(summary, undefined, 2)}\n`]);
  return { directory, report: path('report.html'), summary };
}

export interface RunTables extends Pick<Summary, 'files' | 'hashes'> {
  /** By step, at least −1; see `drawdownsOf`. */
  readonly drawdown: Float64Array;
  /** Exit reasons, keyed by the id of the trade. */
  readonly exitReasons: ReadonlyMap<number, ExitReason>;
}

interface TableOptions {
  readonly hasEquityCsv?: boolean;
  readonly closing?: Closing | undefined;
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
  options: TableOptions,
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
  const exitReasons = new ExitReasons(options.closing);
  const [equityHash, events, trades] = await Promise.all([
    equity.length < THREAD_STEPS ? writeEquity(files) : writeEquityInThread(files),
    writeText(path('events.ndjson'), eventLines(result, exitReasons)),
    writeTrades(directory, result),
  ]);
  return {
    files: [
      ...(hasCsv ? ['equity.csv'] : []),
      'equity.parquet',
      'events.ndjson',
      'trades.csv',
      'trades.parquet',
    ],
    hashes: { events, trades, equity: equityHash },
    drawdown,
    exitReasons: exitReasons.of(result.trades),
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

/** Lines of `events.ndjson`. Adds each event to the exit reasons, because reading a journal takes long. */
function* eventLines({ journal }: RunResult, exitReasons: ExitReasons): Generator<string> {
  for (const event of journal.events()) {
    exitReasons.add(event);
    yield `${JSON.stringify(event)}\n`;
  }
}
