import { availableParallelism } from 'node:os';
import { beforeThreadEnds } from '../base/end-thread.ts';
import type {
  DuckDBConnection,
  DuckDBDataChunk,
  DuckDBDoubleVector,
  DuckDBInstance,
} from '@duckdb/node-api';

/** More threads would not read faster, because filling the columns is slower, and need more memory. */
const MAX_THREADS = 4;

/**
 * Rows that a streamed result may hold ready. With less, the threads that read wait for each other,
 * and a CSV file is read by one of them only.
 */
const BUFFER = '48MB';

/**
 * Open database of this thread that no call is using. It is kept for the next call, because opening and
 * closing one takes about 25 ms.
 */
let idle: DuckDBInstance | undefined;

/**
 * Runs `work` on an in-memory database that uses UTC, limited memory and no network. The first call
 * loads DuckDB, which takes longer than starting a verb that needs no data. `work` must not leave tables
 * or functions behind, because later calls reuse the database. Concurrent calls use separate databases.
 */
export function withDuckDB<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  return beforeThreadEnds(async () => {
    const taken = idle;
    idle = undefined;
    const instance = taken ?? (await open());
    let isUsable = false;
    try {
      const result = await withConnection(instance, work);
      isUsable = true;
      return result;
    } finally {
      if (isUsable && idle === undefined) idle = instance;
      else instance.closeSync();
    }
  });
}

/**
 * Like `withDuckDB`, on a new database that is closed afterwards. For work that leaves objects behind,
 * such as a registered table function.
 */
export function withOwnDuckDB<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  return beforeThreadEnds(async () => {
    const instance = await open();
    try {
      return await withConnection(instance, work);
    } finally {
      instance.closeSync();
    }
  });
}

async function open(): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  return DuckDBInstance.create(':memory:', {
    threads: String(Math.min(MAX_THREADS, availableParallelism())),
    memory_limit: '1GB',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    enable_external_file_cache: 'false',
  });
}

async function withConnection<T>(
  instance: DuckDBInstance,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const connection = await instance.connect();
  try {
    await connection.run(`SET TimeZone = 'UTC'; SET streaming_buffer_size = '${BUFFER}'`);
    return await work(connection);
  } finally {
    connection.closeSync();
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
