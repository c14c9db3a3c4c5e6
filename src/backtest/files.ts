import { createHash, type Hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import { removeAbandoned, tryToWriteInto, writeAtomically } from '../base/atomic-file.ts';
import type { RunResult, Trade } from '../engine/result.ts';
import { ServiceError, isSystemError, writeRemedy } from '../base/errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import type { Outcome } from './backtest.ts';
import { holdEquity } from './hold.ts';
import type { BacktestJob } from './job.ts';
import { renderReport } from './report/report.ts';
import type { Summary } from './summary.ts';
import { csvCell } from './csv.ts';

/** All that a run leaves. */
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
 * Writes `events.ndjson`, `trades.csv`, `equity.csv`, `report.html` and, last, `summary.json`, whose
 * `hashes` are the sha256 sums of the first three files. Each appears whole or not at all.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeRun(
  directory: string,
  job: BacktestJob,
  { result, summary: unhashed }: Outcome,
): Promise<RunFiles> {
  // Writing millions of lines is all garbage. V8 would let it grow to a multiple of what lives, on
  // top of columns that it does not know of, before it cleared it away. All threads have the same
  // flags, and a server that does this in one of them has other work in the rest.
  if (isMainThread) setFlagsFromString('--heap-growing-percent=30');
  const path = (name: string): string => join(directory, name);
  const hashes = {
    events: await writeText(path('events.ndjson'), eventLines(result)),
    trades: await writeText(path('trades.csv'), tradeLines(result)),
    equity: await writeText(path('equity.csv'), equityLines(result)),
  };
  const summary: Summary = { ...unhashed, hashes };
  const { instruments, currency } = job;
  // A curve of millions of points is worth its memory only for as long as it is drawn.
  const benchmark = holdEquity(instruments, result.time, result.initialCash);
  const report = renderReport({ summary, result, instruments, currency, benchmark });
  await writeText(path('report.html'), [report]);
  await writeText(path('summary.json'), [`${JSON.stringify(summary, undefined, 2)}\n`]);
  return { directory, report: path('report.html'), summary };
}

/**
 * Creates the directory, removes temporary files of dead processes, and tries to write there, so
 * that a run whose results could not be stored fails before it starts.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function prepareDirectory(directory: string): Promise<void> {
  try {
    makeDirectory(directory);
    // These files come first, since they may be what fills the disk.
    await removeAbandoned(directory);
    await tryToWriteInto(directory);
  } catch (error) {
    const remedy = 'Choose another directory with --out, or make this one writable.';
    throw notWritable(directory, error, remedy);
  }
}

/**
 * Removes the result of an earlier run, which must not stand for this one should it fail. A place
 * that could not be written to is refused now.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function removeOld(path: string): Promise<void> {
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
 * @returns its sha256.
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

/** Small enough that V8 clears away the texts as it goes; larger ones pile up until a full collection. */
const BLOCK_CHARACTERS = 1 << 14;

/**
 * The parts put together until they are worth a system call, each block added to the hash. A block
 * is good until the next one is asked for: they share their memory.
 */
function* blocksOf(parts: Iterable<string>, hash: Hash): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  let memory = new Uint8Array(3 * BLOCK_CHARACTERS);
  let text = '';
  const block = (): Uint8Array => {
    // UTF-8 takes at most three bytes for a UTF-16 unit.
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
  remedy = 'Make its directory writable, or choose another.',
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

const TRADE_COLUMNS = [
  'id',
  'symbol',
  'side',
  'entry_time',
  'exit_time',
  'bars',
  'quantity',
  'entry_price',
  'exit_price',
  'pnl',
  'return',
  'fees',
] as const satisfies readonly (keyof Trade)[];

function* tradeLines({ trades, openTrades }: RunResult): Generator<string> {
  yield `${TRADE_COLUMNS.join(',')},status\n`;
  for (const [status, list] of [['closed', trades] as const, ['open', openTrades] as const]) {
    for (const trade of list) {
      const cells = TRADE_COLUMNS.map((column) =>
        column === 'entry_time' || column === 'exit_time'
          ? new Date(trade[column]).toISOString()
          : csvCell(trade[column]),
      );
      yield `${cells.join(',')},${status}\n`;
    }
  }
}

function* equityLines({ time, equity, initialCash }: RunResult): Generator<string> {
  yield 'time,equity,drawdown\n';
  let peak = initialCash;
  for (let step = 0; step < equity.length; step += 1) {
    const value = equity[step]!;
    peak = Math.max(peak, value);
    yield `${new Date(time[step]!).toISOString()},${value},${Math.max(-1, value / peak - 1)}\n`;
  }
}
