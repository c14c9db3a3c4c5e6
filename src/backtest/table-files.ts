import { join } from 'node:path';
import { eventLines } from '../engine/event-lines.ts';
import { Journal, type JournalData } from '../engine/journal.ts';
import { writeEquity } from './equity-files.ts';
import type { EquityCurve } from './result-csv.ts';
import type { Summary } from './summary.ts';
import { writeTrades, type TradeTable } from './trade-files.ts';
import { writeText } from './write-text.ts';

/** The tables of a run as plain data, for another thread. */
export interface TableFiles {
  readonly directory: string;
  readonly curve: EquityCurve;
  /** Whether `equity.csv` is written. */
  readonly hasCsv: boolean;
  readonly journal: JournalData;
  readonly trades: TradeTable;
}

/**
 * Writes `events.ndjson`, the trades as CSV and Parquet, `equity.parquet`, and `equity.csv` if `hasCsv`.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeTableFiles(tables: TableFiles): Promise<Summary['hashes']> {
  const { directory, journal } = tables;
  const [equity, events, trades] = await Promise.all([
    writeEquity(tables),
    writeText(join(directory, 'events.ndjson'), eventLines(Journal.read(journal))),
    writeTrades(directory, tables.trades),
  ]);
  return { events, trades, equity };
}
