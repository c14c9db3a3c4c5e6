import { createHash } from 'node:crypto';
import { BAR_COLUMNS, type Bars } from './bars.ts';

/**
 * sha256 (hex) over the columns' bytes in the order of `BAR_COLUMNS`, each value as a
 * little-endian float64. Equal bars give equal digests whatever file they came from.
 */
export function barsDigest(bars: Bars): string {
  const hash = createHash('sha256');
  for (const name of BAR_COLUMNS) {
    const column = bars[name];
    // The machine's own byte order: every platform with DuckDB bindings is little-endian.
    hash.update(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  }
  return hash.digest('hex');
}
