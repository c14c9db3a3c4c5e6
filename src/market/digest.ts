import { createHash } from 'node:crypto';
import { BAR_COLUMNS, type Bars } from './bars.ts';

/**
 * sha256 (hex) of the columns in the order of `BAR_COLUMNS`, each value as a little-endian float64.
 * Does not depend on the format of the file.
 */
export function barsDigest(bars: Bars): string {
  const hash = createHash('sha256');
  for (const name of BAR_COLUMNS) {
    const column = bars[name];
    // The bytes are in machine order: every platform with DuckDB bindings is little-endian.
    hash.update(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  }
  return hash.digest('hex');
}
