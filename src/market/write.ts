import type { DuckDBVector } from '@duckdb/node-api';
import { BAR_COLUMNS, type Bars } from './bars.ts';
import { quoteText, withDuckDB } from './duckdb.ts';

/** Size of DuckDB's data chunks. */
const CHUNK = 2048;

/**
 * Writes a Parquet file with `time` as a UTC timestamp and doubles in the other columns. Passes the rows
 * to DuckDB in chunks, so that a long history is not in memory twice.
 */
export async function writeParquet(path: string, bars: Bars): Promise<void> {
  const { DOUBLE, DuckDBTableFunction } = await import('@duckdb/node-api');
  let written = 0;
  const source = DuckDBTableFunction.create({
    name: 'bars',
    bindFunction: (binding) => {
      for (const name of BAR_COLUMNS) binding.addResultColumn(name, DOUBLE);
    },
    initFunction: (init) => init.setMaxThreads(1),
    mainFunction: (_, chunk) => {
      const rows = Math.min(CHUNK, bars.length - written);
      chunk.rowCount = rows;
      for (const [position, name] of BAR_COLUMNS.entries()) {
        const column = bars[name];
        const vector = chunk.getColumnVector(position) as DuckDBVector<number>;
        for (let row = 0; row < rows; row++) vector.setItem(row, column[written + row]!);
        vector.flush();
      }
      written += rows;
    },
  });
  await withDuckDB(async (connection) => {
    connection.registerTableFunction(source);
    await connection.run(
      'COPY (SELECT epoch_ms(time::BIGINT) AS time, open, high, low, close, volume FROM bars()) ' +
        `TO ${quoteText(path)} (FORMAT parquet, COMPRESSION zstd)`,
    );
  });
}
