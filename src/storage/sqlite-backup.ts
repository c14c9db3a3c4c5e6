/** Backups of a SQLite database: one file, complete without a write-ahead log. */
import { open, stat } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { writeAtomically } from '../base/atomic-file.ts';
import { ServiceError } from '../base/errors.ts';

/** Number of pages to copy before other work of this process runs. */
const PAGES_AT_ONCE = 2_000;

export interface BackupOptions {
  /** Replaces an existing file. */
  readonly force: boolean;
  /** Called with the number of pages copied so far and their total. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Identifies the content of a backup. */
export interface BackupContent {
  /** Null for a database of version 0.1.0, which has no identity yet. */
  readonly database_id: string | null;
  readonly epoch: number | null;
  /** The last entry of the audit log. */
  readonly audit_head: { readonly seq: number; readonly hash: string };
  /** Number of files of archived events, which are not part of the backup. */
  readonly archived_files: number;
}

/**
 * Copies a database, which other processes may be writing to, as of one moment. The copy appears
 * under its name after its integrity is checked.
 *
 * @throws the system's error, `EEXIST` for an existing file without `force`; ServiceError
 *   `storage_unavailable` for a database that cannot be read or is damaged.
 */
export async function backupSqlite(
  source: string,
  out: string,
  { force, onProgress }: BackupOptions,
): Promise<BackupContent> {
  let content: BackupContent | undefined;
  await writeAtomically(out, [], {
    mode: 0o600,
    exclusive: !force,
    async check(temporary) {
      await copyPages(source, temporary, onProgress);
      content = checkBackup(temporary, source);
      await syncFile(temporary);
    },
  });
  return content!;
}

async function copyPages(
  source: string,
  to: string,
  onProgress: BackupOptions['onProgress'],
): Promise<void> {
  const database = openExisting(source, { readonly: true });
  try {
    // Within one transaction: without it, each write of a server would restart the copy.
    database.exec('begin');
    database.prepare('select count(*) from sqlite_schema').get();
    await database.backup(to, {
      progress({ totalPages, remainingPages }) {
        onProgress?.(totalPages - remainingPages, totalPages);
        return PAGES_AT_ONCE;
      },
    });
  } catch (error) {
    throw unreadable(source, error);
  } finally {
    database.close();
  }
}

/**
 * Checks the integrity of a copy that no other process uses, and makes it a single file.
 * @param name of the file in messages.
 * @throws ServiceError `storage_unavailable`
 */
export function checkBackup(file: string, name: string): BackupContent {
  const database = openExisting(file, {}, name);
  try {
    database.pragma('journal_mode = delete');
    const faults = database.pragma('integrity_check(5)') as { readonly integrity_check: string }[];
    const [{ integrity_check: first } = { integrity_check: 'no result' }] = faults;
    if (first !== 'ok') throw new Error(faults.map((fault) => fault.integrity_check).join('; '));
    return contentOf(database);
  } catch (error) {
    throw unreadable(name, error);
  } finally {
    database.close();
  }
}

function contentOf(database: Database.Database): BackupContent {
  const identity = hasIdentity(database)
    ? database.prepare('select database_id, epoch from database_identity').get()
    : { database_id: null, epoch: null };
  const audit_head = database.prepare('select seq, hash from audit_head').get();
  if (identity === undefined || audit_head === undefined) {
    throw new Error('the table database_identity or audit_head is empty');
  }
  return {
    ...(identity as Pick<BackupContent, 'database_id' | 'epoch'>),
    audit_head: audit_head as BackupContent['audit_head'],
    archived_files: countArchives(database),
  };
}

/** 0 for databases of versions without archives. */
function countArchives(database: Database.Database): number {
  const table = "select 1 from sqlite_schema where name = 'bot_event_archives'";
  if (database.prepare(table).get() === undefined) return 0;
  const query = database.prepare<[], { readonly count: number }>(
    'select count(*) as count from bot_event_archives',
  );
  return query.get()!.count;
}

/** Whether the schema is newer than version 0.1.0. */
export function hasIdentity(database: Database.Database): boolean {
  const table = "select 1 from sqlite_schema where name = 'database_identity'";
  return database.prepare(table).get() !== undefined;
}

function openExisting(file: string, options: Database.Options, name = file): Database.Database {
  try {
    return new Database(file, { ...options, fileMustExist: true });
  } catch (error) {
    throw unreadable(name, error);
  }
}

function unreadable(name: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ServiceError) return error;
  return new ServiceError('storage_unavailable', `${name}: ${error.message}`, {
    remedy: 'Use an intact database or backup of this or an older version of service-local.',
    cause: error,
  });
}

export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Whether both paths lead to the same file. */
export async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all(
    [one, other].map((path) => stat(path, { bigint: true }).catch(() => undefined)),
  );
  return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
}
