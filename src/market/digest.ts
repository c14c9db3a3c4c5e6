import { createHash } from 'node:crypto';
import { BAR_COLUMNS, type Bars } from './bars.ts';

/** `columnsDigest` in the order of `BAR_COLUMNS`. Does not depend on the format of the file. */
export function barsDigest(bars: Bars): string {
  return columnsDigest(BAR_COLUMNS.map((name) => bars[name]));
}

/** sha256 (hex) of the columns in their order, each value as a little-endian float64. */
export function columnsDigest(columns: readonly Float64Array[]): string {
  const hash = createHash('sha256');
  for (const { buffer, byteOffset, byteLength } of columns) {
    // The bytes are in machine order: every platform with DuckDB bindings is little-endian.
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  }
  return hash.digest('hex');
}
