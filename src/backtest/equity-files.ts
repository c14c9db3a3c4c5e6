import { join } from 'node:path';
import { fillAtomically } from '../base/atomic-file.ts';
import { columnsDigest } from '../market/digest.ts';
import { writeParquet } from '../market/write.ts';
import { EQUITY_COLUMNS, equityLines, type EquityCurve } from './result-csv.ts';
import { notWritable, writeText } from './write-text.ts';

export interface EquityFiles {
  readonly directory: string;
  readonly curve: EquityCurve;
  readonly hasCsv: boolean;
}

/**
 * Writes `equity.parquet`, and `equity.csv` if `hasCsv`.
 *
 * @returns `hashes.equity` of the summary
 * @throws ServiceError `output_not_writable`
 */
export async function writeEquity({ directory, curve, hasCsv }: EquityFiles): Promise<string> {
  const path = join(directory, 'equity.parquet');
  try {
    await fillAtomically(path, (temporary) => writeParquet(temporary, curve, EQUITY_COLUMNS));
  } catch (error) {
    throw notWritable(path, error);
  }
  if (hasCsv) return writeText(join(directory, 'equity.csv'), equityLines(curve));
  return columnsDigest([curve.time, curve.equity]);
}
