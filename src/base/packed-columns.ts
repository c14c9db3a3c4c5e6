import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** A number has at most 25 characters in JSON, with its comma. */
const MOST_CHARACTERS = 26;

/**
 * Packs columns of finite numbers of equal length into text: JSON, compressed with Zstandard, in
 * base64. The first column must hold integers, of which the differences are stored.
 */
export function packColumns(columns: readonly ArrayLike<number>[]): string {
  const lists = columns.map((column) => Array.from(column));
  const [first = [], ...others] = lists;
  const differences = first.map((value, at) => (at === 0 ? value : value - first[at - 1]!));
  return zstdCompressSync(JSON.stringify([differences, ...others])).toString('base64');
}

/**
 * Unpacks the output of `packColumns`.
 *
 * @param width number of columns
 * @param mostRows greatest length of a column
 * @throws RangeError for any other text.
 */
export function unpackColumns(text: string, width: number, mostRows: number): number[][] {
  const columns = listsOf(text, width * (mostRows * MOST_CHARACTERS + 3) + 2);
  const isTable =
    Array.isArray(columns) &&
    columns.length === width &&
    columns.every((column) => Array.isArray(column) && column.every(Number.isFinite)) &&
    new Set(columns.map((column: number[]) => column.length)).size === 1 &&
    columns[0].length <= mostRows;
  if (!isTable) throw new RangeError(`expected ${width} columns of at most ${mostRows} numbers`);
  const [first, ...others] = columns as [number[], ...number[][]];
  let value = 0;
  return [first.map((difference) => (value += difference)), ...others];
}

function listsOf(text: string, maxOutputLength: number): unknown {
  try {
    const json = zstdDecompressSync(Buffer.from(text, 'base64'), { maxOutputLength });
    return JSON.parse(json.toString()) as unknown;
  } catch (cause) {
    throw new RangeError('expected packed columns', { cause });
  }
}
