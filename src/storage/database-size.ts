import { sql } from 'kysely';
import { tableSizes, type TableSize } from './table-sizes.ts';
import type { Storage } from './storage.ts';

/** Sizes in bytes. */
export interface DatabaseSize {
  readonly total: number;
  /** By table, with its indexes. Empty for SQLite, which would have to read the whole file. */
  readonly tables: readonly TableSize[];
}

export async function databaseSize({
  read,
  kind,
}: Pick<Storage, 'read' | 'kind'>): Promise<DatabaseSize> {
  if (kind === 'sqlite') {
    const { rows } = await sql<{ bytes: number }>`
      select page_count * page_size as bytes from pragma_page_count, pragma_page_size`.execute(
      read,
    );
    return { total: rows[0]!.bytes, tables: [] };
  }
  const tables = await tableSizes(read);
  return { total: tables.reduce((sum, { bytes }) => sum + bytes, 0), tables };
}
