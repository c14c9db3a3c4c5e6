import { open } from 'node:fs/promises';
import { doublesOf, CHUNK_ROWS, quoteText, withOwnDuckDB } from './duckdb.ts';

/** Columns of equal length, by name. */
export type ParquetColumns<Name extends string> = Readonly<
  Record<Name, Float64Array | readonly (string | null)[]>
>;

export interface ParquetOptions<Name extends string> {
  /** Columns of whole numbers up to 2⁵³, which are written as 64-bit integers. */
  readonly integers?: readonly Name[];
  /** Texts of columns that hold indexes of them, instead of a text in each row. */
  readonly labels?: Partial<Readonly<Record<Name, readonly string[]>>>;
  /** Default: `snappy`, which is faster but larger. */
  readonly compression?: 'snappy' | 'zstd';
}

/**
 * Writes a durable Parquet file of doubles and texts. `time` and columns whose names end in `_time`, ms
 * since the epoch, become UTC timestamps. Passes the rows to DuckDB in chunks, so that a long history is
 * not in memory twice.
 *
 * @param names order of the columns in the file
 */
export async function writeParquet<Name extends string>(
  path: string,
  columns: ParquetColumns<Name>,
  names: readonly Name[],
  { integers = [], labels = {}, compression = 'snappy' }: ParquetOptions<Name> = {},
): Promise<void> {
  const { DOUBLE, VARCHAR, DuckDBTableFunction } = await import('@duckdb/node-api');
  const count = columns[names[0]!].length;
  const times = names.filter((name) => name === 'time' || name.endsWith('_time'));
  const typed = [
    ...times.map((name) => `epoch_ms(${name}::BIGINT) AS ${name}`),
    ...integers.map((name) => `${name}::BIGINT AS ${name}`),
    ...names.flatMap((name) => {
      const texts = labels[name];
      if (texts === undefined) return [];
      return `[${texts.map(quoteText).join(', ')}][${name}::INTEGER + 1]::VARCHAR AS ${name}`;
    }),
  ];
  const rows = typed.length === 0 ? '*' : `* REPLACE (${typed.join(', ')})`;
  let written = 0;
  const source = DuckDBTableFunction.create({
    name: 'source',
    bindFunction: (binding) => {
      for (const name of names) {
        binding.addResultColumn(name, columns[name] instanceof Float64Array ? DOUBLE : VARCHAR);
      }
    },
    initFunction: (init) => init.setMaxThreads(1),
    mainFunction: (_, chunk) => {
      const end = Math.min(written + CHUNK_ROWS, count);
      chunk.rowCount = end - written;
      for (const [position, name] of names.entries()) {
        const column = columns[name];
        if (column instanceof Float64Array) {
          doublesOf(chunk, position).set(column.subarray(written, end));
          chunk.getColumnVector(position).flush();
        } else chunk.setColumnValues(position, column.slice(written, end));
      }
      written = end;
    },
  });
  await withOwnDuckDB(async (connection) => {
    connection.registerTableFunction(source);
    await connection.run(
      `COPY (SELECT ${rows} FROM source()) ` +
        // Version 2 of the format encodes doubles byte by byte: half the size and time.
        `TO ${quoteText(path)} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION ${compression})`,
    );
  });
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
