import { readFile } from 'node:fs/promises';
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import type { Trade } from '../../engine/round-trip.ts';
import { readColumns, readTexts } from '../../market/read-columns.ts';
import { TRADE_COLUMNS } from '../run-tables.ts';
import type { Curve } from '../curve-statistics.ts';
import type { Summary } from '../summary.ts';

/** A finished run as read from its directory. */
export interface StoredRun extends Curve {
  readonly directory: string;
  readonly summary: Summary;
  /** In order of entry. */
  readonly trades: readonly StoredTrade[];
}

export interface StoredTrade extends Trade {
  readonly status: 'closed' | 'open';
}

const SCHEMA: Summary['schema'] = 'service-local/backtest/v1';

/**
 * Finds the directory of a run.
 *
 * @param name a directory with `summary.json`, or the id of a run below `runsDir`
 * @throws ServiceError `file_not_found`
 */
export function findRun(name: string, { cwd, runsDir }: { cwd: string; runsDir: string }): string {
  const named = resolve(cwd, name);
  const bots = existsSync(runsDir) ? readdirSync(runsDir) : [];
  const all = [named, ...bots.map((bot) => join(runsDir, bot, name))];
  const found = all.find((directory) => existsSync(join(directory, 'summary.json')));
  if (found !== undefined) return found;
  throw new ServiceError(
    'file_not_found',
    `${name} is neither a directory with summary.json nor a run in ${runsDir}`,
    {
      remedy: 'Name the directory of a finished backtest, or its run id as in summary.json.',
    },
  );
}

/**
 * Reads `summary.json`, the equity and `trades.csv`.
 *
 * @throws ServiceError `file_not_found`, or `invalid_data` for files that are not of a backtest
 */
export async function readRun(directory: string): Promise<StoredRun> {
  const summary = await readSummary(join(directory, 'summary.json'));
  // Summaries of the first version have no list of files; their runs always have equity.csv.
  const hasParquet = (summary.files as readonly string[] | undefined)?.includes('equity.parquet');
  const equityFile = join(directory, hasParquet ? 'equity.parquet' : 'equity.csv');
  const columns = await readTable(equityFile, (path) => readColumns(path, ['time', 'equity']));
  const rows = await readTable(join(directory, 'trades.csv'), readTexts);
  return {
    directory,
    summary,
    ...columns,
    initialCash: summary.equity.start,
    trades: rows.map(tradeOf).toSorted((a, b) => a.id - b.id),
  };
}

async function readSummary(path: string): Promise<Summary> {
  try {
    const summary = JSON.parse(await readFile(path, 'utf8')) as Summary;
    if (summary.schema === SCHEMA) return summary;
  } catch (cause) {
    if (isSystemError(cause)) throw unreadable(path, cause);
  }
  throw new ServiceError('invalid_data', `${path} is not the summary of a backtest`, {
    remedy: `Name a run whose summary.json has the schema ${SCHEMA}.`,
  });
}

async function readTable<T>(path: string, read: (path: string) => Promise<T>): Promise<T> {
  if (!existsSync(path)) throw unreadable(path);
  try {
    return await read(path);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

function unreadable(path: string, cause?: unknown): ServiceError {
  const missing = cause === undefined || isSystemError(cause, 'ENOENT');
  return new ServiceError(
    missing ? 'file_not_found' : 'invalid_data',
    missing ? `no such file: ${path}` : `${path} cannot be read`,
    { remedy: 'Run the backtest again, with the same bot and data.', cause },
  );
}

function tradeOf(row: Readonly<Record<string, string>>): StoredTrade {
  const values = TRADE_COLUMNS.map((column) => {
    const text = row[column]!;
    if (column === 'entry_time' || column === 'exit_time') return [column, Date.parse(text)];
    // `csvCell` puts an apostrophe before texts that a spreadsheet would run as a formula.
    if (column === 'symbol') return [column, text.replace(/^'(?=[=+\-@\t\r])/, '')];
    return [column, column === 'side' || column === 'status' ? text : Number(text)];
  });
  return Object.fromEntries(values) as StoredTrade;
}
