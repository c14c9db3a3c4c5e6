import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { barsFromRows, sliceBars } from '../../src/market/bars.ts';
import { barsDigest } from '../../src/market/digest.ts';
import type { Row } from './bars.ts';

const ROWS: Row[] = [
  [1, 2, 3, 4, 5, 6],
  [7, 8, 9, 10, 11, 12.5],
];

test('the digest is the sha256 of the columns as little-endian doubles', () => {
  const bytes = Buffer.alloc(12 * 8);
  const columns = [0, 1, 2, 3, 4, 5].flatMap((column) => ROWS.map((row) => row[column]!));
  for (const [index, value] of columns.entries()) bytes.writeDoubleLE(value, index * 8);
  const expected = createHash('sha256').update(bytes).digest('hex');
  expect(barsDigest(barsFromRows(ROWS))).toBe(expected);
});

test('the digest of a slice covers only the slice', () => {
  const part = sliceBars(barsFromRows(ROWS), 1, 2);
  expect(barsDigest(part)).toBe(barsDigest(barsFromRows(ROWS.slice(1))));
});
