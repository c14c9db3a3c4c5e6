import { join } from 'node:path';
import { columnsDigest } from '../market/digest.ts';
import { equityLines } from './result-csv.ts';
import { EQUITY_COLUMNS, type CountLines, type TableFiles } from './run-tables.ts';
import { writeColumns } from './write-columns.ts';
import { writeText } from './write-text.ts';

/**
 * Writes `equity.parquet`, and `equity.csv` if `hasCsv`.
 *
 * @returns `hashes.equity` of the summary
 * @throws ServiceError `output_not_writable`
 */
export async function writeEquity(
  { directory, curve, hasCsv }: Pick<TableFiles, 'directory' | 'curve' | 'hasCsv'>,
  count: CountLines,
): Promise<string> {
  await writeColumns(join(directory, 'equity.parquet'), curve, EQUITY_COLUMNS);
  if (hasCsv) return writeText(join(directory, 'equity.csv'), count(equityLines(curve)));
  return columnsDigest([curve.time, curve.equity]);
}
