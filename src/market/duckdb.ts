import { availableParallelism } from 'node:os';
import type { DuckDBConnection } from '@duckdb/node-api';

/** More threads read no faster than the columns can be filled, and each holds buffers of its own. */
const MAX_THREADS = 4;

/**
 * Runs `work` on a fresh in-memory database: UTC, offline, bounded in memory. DuckDB is loaded by
 * the first call and not before, for it costs more than starting a verb that needs no data.
 */
export async function withDuckDB<T>(
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
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
      await connection.run("SET TimeZone = 'UTC'");
      return await work(connection);
    } finally {
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}

export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A path as SQL text that names this one file, though it holds characters DuckDB expands. */
export function quotePath(path: string): string {
  return quoteText(path.replaceAll(/[*?[]/g, (character) => `[${character}]`));
}
