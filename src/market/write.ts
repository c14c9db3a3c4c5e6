import { open } from 'node:fs/promises';
import { doublesOf, CHUNK_ROWS, quoteText, withDuckDB } from './duckdb.ts';

/**
 * Writes a durable Parquet file with `time`, ms since the epoch, as a UTC timestamp and doubles in the other
 * columns. Passes the rows to DuckDB in chunks, so that a long history is not in memory twice.
 *
 * @param names order of the columns in the file
 */
export async function writeParquet<Name extends string>(
  path: string,
  columns: Readonly<Record<'time' | Name, Float64Array>>,
  names: readonly ('time' | Name)[],
): Promise<void> {
  const { DOUBLE, DuckDBTableFunction } = await import('@duckdb/node-api');
  let written = 0;
  const source = DuckDBTableFunction.create({
    name: 'source',
    bindFunction: (binding) => {
      for (const name of names) binding.addResultColumn(name, DOUBLE);
    },
    initFunction: (init) => init.setMaxThreads(1),
    mainFunction: (_, chunk) => {
      const end = Math.min(written + CHUNK_ROWS, columns.time.length);
      chunk.rowCount = end - written;
      for (const [position, name] of names.entries()) {
        doublesOf(chunk, position).set(columns[name].subarray(written, end));
        chunk.getColumnVector(position).flush();
      }
      written = end;
    },
  });
  await withDuckDB(async (connection) => {
    connection.registerTableFunction(source);
    await connection.run(
      'COPY (SELECT * REPLACE (epoch_ms(time::BIGINT) AS time) FROM source()) ' +
        // Version 2 of the format encodes doubles byte by byte: half the size and time.
        `TO ${quoteText(path)} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION snappy)`,
    );
  });
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
