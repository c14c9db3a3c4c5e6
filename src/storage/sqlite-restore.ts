import { createReadStream, existsSync, statSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { removeAbandoned, writeAtomically } from '../base/atomic-file.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { checkBackup, hasIdentity, isSameFile, syncFile } from './sqlite-backup.ts';

const HEADER = 'SQLite format 3\0';

/** The database that a backup replaces. */
export interface Replaced {
  readonly file: string;
  /** Highest epoch that it knows; 0 if it is too old or too damaged. */
  readonly epoch: number;
}

/**
 * Copies a backup beside `to`, lets `prepare` change the copy, and only then replaces `to` with it.
 * An existing database is kept beside it under another name.
 *
 * @param prepare receives the copy, which no other process uses.
 * @throws ServiceError `file_not_found`, `invalid_data`; `conflict` for an existing database without
 *   `force`, and for one that a process has open; what `prepare` throws; the system's errors.
 */
export async function restoreSqlite<T>(
  file: string,
  to: string,
  { force, now }: { readonly force: boolean; readonly now: number },
  prepare: (copy: string, replaced: Replaced | undefined) => Promise<T>,
): Promise<{ readonly prepared: T; readonly replaced: Replaced | undefined }> {
  await refuseNoBackup(file, to);
  const exists = existsSync(to);
  if (exists && !force) {
    throw new ServiceError('conflict', `the database ${to} already exists`, {
      reason: 'database_exists',
      remedy: 'Replace it with --force; it is kept under another name.',
    });
  }
  makeDirectory(dirname(to), 0o700);
  const existing = exists ? takeExisting(to) : undefined;
  try {
    const kept = `${to}.replaced-${new Date(now).toISOString().replaceAll(/[-:.]/g, '')}`;
    const replaced = existing && { file: kept, epoch: existing.epoch };
    let prepared: T;
    await writeAtomically(to, createReadStream(file), {
      mode: 0o600,
      async check(copy) {
        checkBackup(copy, file);
        prepared = await prepare(copy, replaced);
        await syncFile(copy);
        if (existing) await keep(to, kept);
        // SQLite would apply the journals of the replaced database to the new one.
        for (const suffix of ['-wal', '-shm', '-journal']) await rm(to + suffix, { force: true });
      },
    });
    await removeAbandoned(dirname(to));
    return { prepared: prepared!, replaced };
  } finally {
    existing?.release();
  }
}

async function refuseNoBackup(path: string, to: string): Promise<void> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('file_not_found', `cannot read ${path} (${error.code})`, {
      remedy: 'Name a backup that exists and that this user can read.',
      cause: error,
    });
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(16), 0, 16, 0);
    if (buffer.subarray(0, bytesRead).toString('latin1') !== HEADER) {
      throw new ServiceError('invalid_data', `${path} is not a SQLite database`, {
        remedy:
          'Choose a file that `service-local server backup` wrote; to restore a PostgreSQL dump, set DATABASE_URL.',
      });
    }
  } finally {
    await file.close();
  }
  const hasLog = existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0;
  if (!hasLog && !(await isSameFile(path, to))) return;
  throw new ServiceError('invalid_data', `${path} is a database in use, not a backup`, {
    reason: 'not_a_backup',
    remedy: 'Choose a file that `service-local server backup` wrote.',
  });
}

interface Existing {
  readonly epoch: number;
  readonly release: () => void;
}

/**
 * Moves the write-ahead log of the existing database into its file and locks it, so that no process
 * opens it meanwhile.
 */
function takeExisting(file: string): Existing {
  let database: Database.Database | undefined;
  try {
    const opened = (database = new Database(file, { timeout: 100, fileMustExist: true }));
    // Fails while another connection exists.
    opened.pragma('journal_mode = delete');
    opened.exec('begin exclusive');
    return {
      epoch: epochOf(opened),
      release() {
        opened.close();
      },
    };
  } catch (error) {
    database?.close();
    if ((error as { readonly code?: unknown }).code !== 'SQLITE_BUSY') {
      // A damaged database may be replaced.
      return { epoch: 0, release() {} };
    }
    throw new ServiceError('conflict', `another process is using the database ${file}`, {
      reason: 'database_in_use',
      remedy: 'Stop the server and its workers, and restore again. Nothing has been changed.',
      cause: error,
    });
  }
}

function epochOf(database: Database.Database): number {
  if (!hasIdentity(database)) return 0;
  const row = database
    .prepare<[], { readonly epoch: number; readonly superseded_by: number | null }>(
      'select epoch, superseded_by from database_identity',
    )
    .get();
  return Math.max(row?.epoch ?? 0, row?.superseded_by ?? 0);
}

/** Copies instead of renaming, so that a server that is started on the copy finds another place. */
async function keep(from: string, to: string): Promise<void> {
  const options = { mode: 0o600, exclusive: true };
  await writeAtomically(to, createReadStream(from), options);
  for (const suffix of ['-wal', '-journal']) {
    if (!existsSync(from + suffix)) continue;
    await writeAtomically(to + suffix, createReadStream(from + suffix), options);
  }
}
