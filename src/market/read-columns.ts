import { CHUNK_ROWS, doublesOf, quoteName, quotePath, withDuckDB } from './duckdb.ts';

/**
 * Reads columns of a CSV or Parquet file by name: `time` as ms since the epoch, others as doubles.
 *
 * @throws Error of DuckDB if the file is unreadable or has no such column
 */
export async function readColumns<Name extends string>(
  path: string,
  names: readonly Name[],
): Promise<Record<Name, Float64Array>> {
  const file = quotePath(path);
  const from = path.endsWith('.csv') ? `read_csv(${file})` : `read_parquet(${file})`;
  const expressions = names.map((name) =>
    name === 'time' ? 'epoch_ms(time::TIMESTAMP)::DOUBLE' : `${quoteName(name)}::DOUBLE`,
  );
  return withDuckDB(path, async (connection) => {
    const count = await connection.runAndReadAll(`SELECT count(*)::DOUBLE FROM ${from}`);
    const length = count.value(0, 0) as number;
    const columns = names.map(() => new Float64Array(length + CHUNK_ROWS));
    const result = await connection.stream(`SELECT ${expressions.join(', ')} FROM ${from}`);
    let filled = 0;
    for (
      let chunk = await result.fetchChunk();
      chunk?.rowCount;
      chunk = await result.fetchChunk()
    ) {
      for (const [position, column] of columns.entries()) {
        column.set(doublesOf(chunk, position).subarray(0, chunk.rowCount), filled);
      }
      filled += chunk.rowCount;
    }
    const entries = names.map((name, position) => [name, columns[position]!.subarray(0, filled)]);
    return Object.fromEntries(entries) as Record<Name, Float64Array>;
  });
}

/** Reads the rows of a CSV file with a header line as texts, by column. */
export async function readTexts(path: string): Promise<Record<string, string>[]> {
  return withDuckDB(path, async (connection) => {
    const rows = await connection.runAndReadAll(
      `SELECT * FROM read_csv(${quotePath(path)}, header = true, all_varchar = true, delim = ',', quote = '"', escape = '"')`,
    );
    return rows.getRowObjects() as Record<string, string>[];
  });
}
