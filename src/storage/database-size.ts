import { sql } from 'kysely';
import type { Storage } from './storage.ts';

/** Sizes in bytes. */
export interface DatabaseSize {
  readonly total: number;
  /** By table, with its indexes. Empty for SQLite, which would have to read the whole file. */
  readonly tables: readonly { readonly name: string; readonly bytes: number }[];
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
  const { rows: tables } = await sql<{ name: string; bytes: number }>`
    select relname as name, pg_total_relation_size(oid) as bytes from pg_class
    where relkind = 'r' and relnamespace = current_schema()::regnamespace`.execute(read);
  return { total: tables.reduce((sum, { bytes }) => sum + bytes, 0), tables };
}
