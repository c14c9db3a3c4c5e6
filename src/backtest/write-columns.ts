import { fillAtomically } from '../base/atomic-file.ts';
import { writeParquet, type ParquetColumns } from '../market/write.ts';
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
): Promise<void> {
  try {
    await fillAtomically(path, (temporary) => writeParquet(temporary, columns, names));
  } catch (error) {
    throw notWritable(path, error);
  }
}
