import { createHash } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunResult, Trade } from '../engine/result.ts';
import { ServiceError } from '../errors.ts';
import type { Outcome } from './backtest.ts';
import { holdEquity } from './hold.ts';
import type { BacktestJob } from './job.ts';
import { renderReport } from './report/report.ts';
import type { Summary } from './summary.ts';
import { csvCell } from './csv.ts';

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
 * Makes the directory and tries a file in it, so that a run that could not be kept is refused before
 * it is made.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function prepareDirectory(directory: string): Promise<void> {
  const probe = join(directory, `.probe-${process.pid}`);
  try {
    await mkdir(directory, { recursive: true });
    await (await open(probe, 'w')).close();
    await rm(probe);
  } catch (error) {
    throw notWritable(directory, error);
  }
}

const BUFFER_CHARACTERS = 1 << 18;

/** Writes the parts one after the other to a new file that then takes its place; its sha256. */
export async function writeText(path: string, parts: Iterable<string>): Promise<string> {
  const temporary = `${path}.${process.pid}.tmp`;
  const hash = createHash('sha256');
  try {
    const file = await open(temporary, 'w');
    try {
      let buffer = '';
      const flush = async (): Promise<void> => {
        const bytes = Buffer.from(buffer);
        buffer = '';
        hash.update(bytes);
        await file.writeFile(bytes);
      };
      for (const part of parts) {
        buffer += part;
        if (buffer.length >= BUFFER_CHARACTERS) await flush();
      }
      await flush();
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw isSystemError(error) ? notWritable(path, error) : error;
  }
  return hash.digest('hex');
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

function notWritable(path: string, cause: unknown): ServiceError {
  const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  return new ServiceError('output_not_writable', `cannot write ${path} (${reason})`, {
    remedy: 'Choose another directory with --out, or make this one writable.',
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
    yield `${new Date(time[step]!).toISOString()},${value},${value / peak - 1}\n`;
  }
}
