import { fillAtomically } from '../base/atomic-file.ts';
import { writeParquet, type ParquetColumns, type ParquetOptions } from '../market/write.ts';
import { notWritable } from './write-text.ts';

/**
 * Writes a Parquet file that appears whole or not at all; see `writeParquet`.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeColumns<Name extends string>(
  path: string,
  columns: ParquetColumns<Name>,
  names: readonly Name[],
  options?: ParquetOptions<Name>,
): Promise<void> {
  try {
    await fillAtomically(path, (temporary) => writeParquet(temporary, columns, names, options));
  } catch (error) {
    throw notWritable(path, error);
  }
}
