import { createHash, type Hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import { removeAbandoned, tryToWriteInto, writeAtomically } from '../base/atomic-file.ts';
import type { RunResult } from '../engine/run-result.ts';
import { ServiceError, isSystemError, writeRemedy } from '../base/errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import type { Outcome } from './backtest.ts';
import { holdEquity } from './hold.ts';
import type { BacktestJob } from './job.ts';
import { renderReport } from './report/report.ts';
import type { Summary } from './summary.ts';
import { csvCell, EQUITY_COLUMNS, TRADE_COLUMNS } from './result-csv.ts';

export const RUN_FILES = [
  'equity.csv',
  'events.ndjson',
  'report.html',
  'summary.json',
  'trades.csv',
] as const;

export interface RunFiles {
  readonly directory: string;
  readonly report: string;
  readonly summary: Summary;
}

/**
 * Writes `events.ndjson`, `trades.csv`, `equity.csv`, `report.html` and finally `summary.json`, with the
 * sha256 of the first three files in `hashes`. Each file appears whole or not at all.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeRun(
  directory: string,
  job: BacktestJob,
  { result, summary: unhashed }: Outcome,
): Promise<RunFiles> {
  // The texts of millions of lines are garbage at once, but V8 lets the heap grow to a multiple of
  // the live objects before it collects them. The flag applies to all threads, so it is not set in
  // a thread of a server, whose other threads do other work.
  if (isMainThread) setFlagsFromString('--heap-growing-percent=30');
  const path = (name: string): string => join(directory, name);
  const hashes = {
    events: await writeText(path('events.ndjson'), eventLines(result)),
    trades: await writeText(path('trades.csv'), tradeLines(result)),
    equity: await writeText(path('equity.csv'), equityLines(result)),
  };
  const summary: Summary = { ...unhashed, hashes };
  const { instruments, currency } = job;
  const benchmark = holdEquity(instruments, result.time, result.initialCash);
  const report = renderReport({ summary, result, instruments, currency, benchmark });
  await writeText(path('report.html'), [report]);
  await writeText(path('summary.json'), [`${JSON.stringify(summary, undefined, 2)}\n`]);
  return { directory, report: path('report.html'), summary };
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
const BLOCK_CHARACTERS = 1 << 14;

/**
 * Joins the parts into blocks, to save system calls, and adds them to the hash. All blocks share their
 * memory, so a block is valid only until the next one is requested.
 */
function* blocksOf(parts: Iterable<string>, hash: Hash): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  let memory = new Uint8Array(3 * BLOCK_CHARACTERS);
  let text = '';
  const block = (): Uint8Array => {
    // UTF-8 needs at most three bytes per UTF-16 unit.
    if (text.length * 3 > memory.length) memory = new Uint8Array(text.length * 3);
    const { written } = encoder.encodeInto(text, memory);
    text = '';
    const bytes = memory.subarray(0, written);
    hash.update(bytes);
    return bytes;
  };
  for (const part of parts) {
    text += part;
    if (text.length >= BLOCK_CHARACTERS) yield block();
  }
  if (text !== '') yield block();
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

function* tradeLines({ trades, openTrades }: RunResult): Generator<string> {
  yield `${TRADE_COLUMNS.join(',')}\n`;
  for (const [status, list] of [['closed', trades] as const, ['open', openTrades] as const]) {
    for (const trade of list) {
      const row = {
        ...trade,
        entry_time: new Date(trade.entry_time).toISOString(),
        exit_time: new Date(trade.exit_time).toISOString(),
        status,
      };
      yield `${TRADE_COLUMNS.map((column) => csvCell(row[column])).join(',')}\n`;
    }
  }
}

function* equityLines({ time, equity, initialCash }: RunResult): Generator<string> {
  yield `${EQUITY_COLUMNS.join(',')}\n`;
  let peak = initialCash;
  for (let step = 0; step < equity.length; step += 1) {
    const value = equity[step]!;
    peak = Math.max(peak, value);
    yield `${new Date(time[step]!).toISOString()},${value},${Math.max(-1, value / peak - 1)}\n`;
  }
}
