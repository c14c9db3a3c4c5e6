/**
 * `node read-columns.js FILE`: reads bars from a CSV or Parquet file into typed arrays with DuckDB, as
 * the floor of commands that read bars. Not TypeScript, because stripping its types would take time.
 */
import { DuckDBInstance } from '@duckdb/node-api';

const [file] = process.argv.slice(2);
const connection = await (await DuckDBInstance.create()).connect();
const result = await connection.run(
  `SELECT epoch_ms(time)::DOUBLE, open, high, low, close, volume::DOUBLE FROM '${file}'`,
);
const columns = Array.from({ length: 6 }, () => new Float64Array(result.rowCount));
let filled = 0;
for (let chunk = await result.fetchChunk(); chunk?.rowCount; chunk = await result.fetchChunk()) {
  // The items are private, but a call for each of them would take longer than reading the file.
  for (const [i, column] of columns.entries()) column.set(chunk.getColumnVector(i).items, filled);
  filled += chunk.rowCount;
}
if (filled !== columns[0].length) throw new Error(`read ${filled} rows of ${columns[0].length}`);
