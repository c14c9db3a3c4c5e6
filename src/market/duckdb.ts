import { statSync } from 'node:fs';
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
 * Bytes of a file above which several threads read it. DuckDB does not divide smaller files among
 * them, and it returns the free memory of the whole process whenever its threads have been idle for a
 * moment.
 */
const LARGE_FILE = 2_000_000;

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
 * Runs `work`, which reads the file at `path`, on an in-memory database that uses UTC, limited memory
 * and no network. The first call loads DuckDB, which takes longer than starting a verb that needs no
 * data. `work` must not leave tables or functions behind, because later calls reuse the database.
 * Concurrent calls use separate databases.
 */
export function withDuckDB<T>(
  path: string,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  return beforeThreadEnds(async () => {
    const threads = isLarge(path) ? mostThreads() : 1;
    const taken = idle;
    idle = undefined;
    const instance = taken ?? (await open(threads));
    let isUsable = false;
    try {
      const result = await withConnection(instance, work, `SET threads = ${threads}`);
      isUsable = true;
      return result;
    } finally {
      if (isUsable && idle === undefined) idle = instance;
      else instance.closeSync();
    }
  });
}

/**
 * Like `withDuckDB`, on a new database that is closed afterwards. For work that reads no file, and for
 * work that leaves objects behind, such as a registered table function.
 */
export function withOwnDuckDB<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  return beforeThreadEnds(async () => {
    const instance = await open(mostThreads());
    try {
      return await withConnection(instance, work);
    } finally {
      instance.closeSync();
    }
  });
}

function isLarge(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LARGE_FILE;
}

function mostThreads(): number {
  return Math.min(MAX_THREADS, availableParallelism());
}

async function open(threads: number): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  return DuckDBInstance.create(':memory:', {
    threads: String(threads),
    memory_limit: '1GB',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    enable_external_file_cache: 'false',
  });
}

async function withConnection<T>(
  instance: DuckDBInstance,
  work: (connection: DuckDBConnection) => Promise<T>,
  settings = '',
): Promise<T> {
  const connection = await instance.connect();
  try {
    await connection.run(
      `SET TimeZone = 'UTC'; SET streaming_buffer_size = '${BUFFER}'; ${settings}`,
    );
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
