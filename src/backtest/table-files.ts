import { join } from 'node:path';
import { eventLines } from '../engine/event-lines.ts';
import { Journal } from '../engine/journal.ts';
import { writeEquity } from './equity-files.ts';
import type { CountLines, OnLines, TableFiles } from './run-tables.ts';
import type { Summary } from './summary.ts';
import { writeTrades } from './trade-files.ts';
import { writeText } from './write-text.ts';

/** Lines between two reports of the progress. */
const REPORTED_LINES = 10_000;

/**
 * Writes `events.ndjson`, the trades as CSV and Parquet, `equity.parquet`, and `equity.csv` if `hasCsv`.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeTableFiles(
  tables: TableFiles,
  onProgress?: OnLines,
): Promise<Summary['hashes']> {
  const { directory, journal, hasCsv, curve, trades: table } = tables;
  const total = journal.rows.count + table.count + (hasCsv ? curve.equity.length : 0);
  let done = 0;
  const counted = function* (lines: Iterable<string>): Generator<string> {
    for (const line of lines) {
      yield line;
      done += 1;
      if (done % REPORTED_LINES === 0) onProgress?.(done, total);
    }
  };
  const count: CountLines = onProgress === undefined ? (lines) => lines : counted;
  onProgress?.(0, total);
  const [equity, events, trades] = await Promise.all([
    writeEquity(tables, count),
    writeText(join(directory, 'events.ndjson'), count(eventLines(Journal.read(journal)))),
    writeTrades(directory, table, count),
  ]);
  return { events, trades, equity };
}
