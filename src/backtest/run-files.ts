import { createHash, type Hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import {
  fillAtomically,
  removeAbandoned,
  tryToWriteInto,
  writeAtomically,
} from '../base/atomic-file.ts';
import type { RunResult } from '../engine/run-result.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError, writeRemedy } from '../base/system-errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { columnsDigest } from '../market/digest.ts';
import { writeParquet } from '../market/write.ts';
import type { Outcome } from './backtest.ts';
import type { BacktestJob } from './job.ts';
import { renderReport } from './report/report.ts';
import type { Summary } from './summary.ts';
import { drawdownsOf } from './returns.ts';
import { EQUITY_COLUMNS, equityLines, tradeLines, type EquityCurve } from './result-csv.ts';

/** Number of steps up to which `equity.csv` is always written, about 13 MB of text. */
const MOST_CSV_STEPS = 200_000;

export interface RunFiles {
  readonly directory: string;
  readonly report: string;
  readonly summary: Summary;
}

/**
 * Writes `events.ndjson`, `trades.csv`, `equity.parquet`, `equity.csv` unless the run is long,
 * `report.html` and finally `summary.json`. Each file appears whole or not at all.
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
  // The texts of millions of lines are garbage at once, but V8 lets the heap grow to a multiple of
  // the live objects before it collects them. The flag applies to all threads, so it is not set in
  // a thread of a server, whose other threads do other work.
  if (isMainThread) setFlagsFromString('--heap-growing-percent=30');
  const path = (name: string): string => join(directory, name);
  const { time, equity, initialCash } = result;
  const drawdown = drawdownsOf(equity, initialCash);
  for (let i = 0; i < drawdown.length; i++) drawdown[i] = Math.max(-1, drawdown[i]!);
  const curve: EquityCurve = { time, equity, drawdown };
  const hasCsv = options.hasEquityCsv === true || equity.length <= MOST_CSV_STEPS;
  // A file of an earlier run in this directory would contradict the other files.
  if (!hasCsv) await removeOldResult(path('equity.csv'));
  await writeEquity(path('equity.parquet'), curve);
  const summary: Summary = {
    ...unhashed,
    files: [
      ...(hasCsv ? ['equity.csv'] : []),
      'equity.parquet',
      'events.ndjson',
      'report.html',
      'summary.json',
      'trades.csv',
    ],
    hashes: {
      events: await writeText(path('events.ndjson'), eventLines(result)),
      trades: await writeText(path('trades.csv'), tradeLines(result)),
      equity: hasCsv
        ? await writeText(path('equity.csv'), equityLines(curve))
        : columnsDigest([time, equity]),
    },
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
  });
  await writeText(path('report.html'), [report]);
  await writeText(path('summary.json'), [`${JSON.stringify(summary, undefined, 2)}\n`]);
  return { directory, report: path('report.html'), summary };
}

async function writeEquity(path: string, curve: EquityCurve): Promise<void> {
  try {
    await fillAtomically(path, (temporary) => writeParquet(temporary, curve, EQUITY_COLUMNS));
  } catch (error) {
    throw notWritable(path, error);
  }
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

/**
 * Writes a file that appears whole or not at all.
 *
 * @returns the sha256 of its content
 * @throws ServiceError `output_not_writable`
 */
export async function writeText(path: string, parts: Iterable<string>): Promise<string> {
  const hash = createHash('sha256');
  try {
    await writeAtomically(path, blocksOf(parts, hash));
  } catch (error) {
    throw isSystemError(error) ? notWritable(path, error) : error;
  }
  return hash.digest('hex');
}

/** Small enough for V8's young generation; larger texts would wait for a full collection. */
const PIECE_CHARACTERS = 1 << 14;
const BLOCK_BYTES = 1 << 20;

/**
 * Joins the parts into blocks, to save system calls, and adds them to the hash. All blocks share their
 * memory, so a block is valid only until the next one is requested.
 */
function* blocksOf(parts: Iterable<string>, hash: Hash): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  let memory = new Uint8Array(BLOCK_BYTES);
  let filled = 0;
  const block = (): Uint8Array => {
    const bytes = memory.subarray(0, filled);
    filled = 0;
    hash.update(bytes);
    return bytes;
  };
  for (const piece of piecesOf(parts)) {
    // UTF-8 needs at most three bytes per UTF-16 unit.
    const most = 3 * piece.length;
    if (filled + most > memory.length) yield block();
    if (most > memory.length) memory = new Uint8Array(most);
    filled += encoder.encodeInto(piece, memory.subarray(filled)).written;
  }
  yield block();
}

function* piecesOf(parts: Iterable<string>): Generator<string> {
  let piece = '';
  for (const part of parts) {
    piece += part;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

export function notWritable(
  path: string,
  cause: unknown,
  remedy = 'Make its directory writable, or choose another directory.',
): ServiceError {
  const reason = isSystemError(cause) ? cause.code : String(cause);
  return new ServiceError('output_not_writable', `cannot write ${path} (${reason})`, {
    remedy: writeRemedy(cause, remedy),
    cause,
  });
}

function* eventLines({ journal }: RunResult): Generator<string> {
  for (const event of journal.events()) yield `${JSON.stringify(event)}\n`;
}
