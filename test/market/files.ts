import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { quoteText, withDuckDB } from '../../src/market/duckdb.ts';

export interface Files {
  /** Absolute path of a name in the directory. */
  path(name: string): string;
  /** Writes the file and returns its path. */
  write(name: string, content: string | Uint8Array): Promise<string>;
  /** Writes the result of a SQL query as Parquet. */
  parquet(name: string, query: string): Promise<string>;
}

/** A directory that is removed after the tests of a file. */
export function useFiles(): Files {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'service-local-market-'));
  });
  afterAll(() => rm(directory, { recursive: true }));
  const path = (name: string): string => join(directory, name);
  return {
    path,
    async write(name, content) {
      await writeFile(path(name), content);
      return path(name);
    },
    async parquet(name, query) {
      await withDuckDB(path(name), async (connection) => {
        await connection.run(`COPY (${query}) TO ${quoteText(path(name))} (FORMAT parquet)`);
      });
      return path(name);
    },
  };
}

/** Lines of a CSV file. */
export function csv(...lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
