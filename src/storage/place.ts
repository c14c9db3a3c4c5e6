/** Place of a database: file or cluster properties that distinguish the database from its copies. */
import { statSync } from 'node:fs';
import { PostgresAdapter, sql, type DialectAdapter } from 'kysely';
import type { Db } from './tables.ts';

/** A value is null if the system does not provide it. */
export type Place = Readonly<Record<string, string | null>>;

const NAMES: Readonly<Record<string, string>> = {
  inode: 'inode of the file',
  born: 'birth time of the file',
  device: 'device of the file',
  system: 'PostgreSQL system identifier',
  timeline: 'PostgreSQL timeline',
  oid: 'OID of the database',
};

/** Call it outside of transactions, since an error would abort them. */
export async function placeOf(db: Db): Promise<Place> {
  const { adapter } = db.getExecutor();
  return adapter instanceof PostgresAdapter ? placeOnPostgres(db, adapter) : placeOfFile(db);
}

/**
 * Describes the differences between two places; empty if they are the same. A device number can
 * change when a machine restarts or a volume is mounted elsewhere, so it counts only if the system
 * does not provide the birth time of the file.
 */
export function differences(before: Place, now: Place): string[] {
  return Object.entries(NAMES).flatMap(([name, words]) => {
    const [was, is] = [before[name], now[name]];
    if (was === is || typeof was !== 'string' || typeof is !== 'string') return [];
    const isDecided =
      name === 'device' && typeof before['born'] === 'string' && now['born'] !== null;
    return isDecided ? [] : [`the ${words} was ${was} and is ${is}`];
  });
}

async function placeOfFile(db: Db): Promise<Place> {
  const { rows } = await sql<{
    readonly file: string;
  }>`select file from pragma_database_list where name = 'main'`.execute(db);
  const file = rows[0]?.file;
  if (!file) return {};
  const { ino, dev, birthtimeNs, ctimeNs } = statSync(file, { bigint: true });
  // Systems that do not know the birth time return the change time or 0.
  const born = birthtimeNs > 0n && birthtimeNs !== ctimeNs ? String(birthtimeNs) : null;
  return { inode: String(ino), born, device: String(dev) };
}

/** PostgreSQL-compatible services without PostgreSQL files lack these functions. */
const UNSUPPORTED: ReadonlySet<unknown> = new Set(['42501', '42883', '0A000', '55000']);

const withoutFiles = new WeakSet<DialectAdapter>();

async function placeOnPostgres(db: Db, adapter: DialectAdapter): Promise<Place> {
  if (!withoutFiles.has(adapter)) {
    try {
      // The newest checkpoint may still have the timeline from before a failover.
      const { rows } = await sql<Place>`select
        (select system_identifier::text from pg_control_system()) as system,
        left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline,
        (select oid::text from pg_database where datname = current_database()) as oid`.execute(db);
      return { ...rows[0] };
    } catch (error) {
      if (!UNSUPPORTED.has((error as { readonly code?: unknown }).code)) throw error;
      withoutFiles.add(adapter);
    }
  }
  const { rows } = await sql<Place>`select
    (select oid::text from pg_database where datname = current_database()) as oid`.execute(db);
  return { system: null, timeline: null, ...rows[0] };
}
