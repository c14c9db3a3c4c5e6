import { availableParallelism } from 'node:os';
import { beforeThreadEnds } from '../base/end-thread.ts';
import type { DuckDBConnection, DuckDBDataChunk, DuckDBDoubleVector } from '@duckdb/node-api';

/** More threads would not read faster, because filling the columns is slower, and need more memory. */
const MAX_THREADS = 4;

/**
 * Rows that a streamed result may hold ready. With less, the threads that read wait for each other,
 * and a CSV file is read by one of them only.
 */
const BUFFER = '48MB';

/**
 * Runs `work` on a new in-memory database that uses UTC, limited memory and no network. The first call
 * loads DuckDB, which takes longer than starting a verb that needs no data.
 */
export function withDuckDB<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  return beforeThreadEnds(() => withDatabase(work));
}

async function withDatabase<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:', {
    threads: String(Math.min(MAX_THREADS, availableParallelism())),
    memory_limit: '1GB',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  });
  try {
    const connection = await instance.connect();
    try {
      await connection.run(`SET TimeZone = 'UTC'; SET streaming_buffer_size = '${BUFFER}'`);
      return await work(connection);
    } finally {
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}

/** Maximum number of rows of a chunk. */
export const CHUNK_ROWS = 2048;

/**
 * Returns the memory of a column of doubles without NULL, which is valid as long as the chunk. The
 * public methods of the vector read and write single values, which takes several times as long.
 */
export function doublesOf(chunk: DuckDBDataChunk, column: number): Float64Array {
  const vector = chunk.getColumnVector(column) as DuckDBDoubleVector;
  return vector['items'];
}

export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a path as SQL text, with DuckDB's wildcards escaped. */
export function quotePath(path: string): string {
  return quoteText(path.replaceAll(/[*?[]/g, (character) => `[${character}]`));
}
