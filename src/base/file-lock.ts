import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Database, { SqliteError } from 'better-sqlite3';
import { ServiceError } from './errors.ts';
import { isSystemError } from './system-errors.ts';
import { makeDirectory } from './make-directory.ts';
import { checkOwner } from './private-file.ts';

const RETRY_MS = 25;

/** `isLocked` holds the lock for less than this, so a shorter wait would fail without need. */
const PROBE_MS = 250;

/** Wait for commands of a person: longer than a renewal takes, unless the server is very slow. */
export const INTERACTIVE_LOCK_WAIT_MS = 10_000;

export interface Lock {
  /** May be called again. */
  release(): void;
  /** False once the lock file was removed or replaced, so that another process could lock the new one. */
  isInPlace(): boolean;
}

/**
 * Runs `work` while holding the lock.
 * @throws ServiceError as `holdLock`
 */
export async function withLock<T>(
  path: string,
  waitMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const lock = await holdLock(path, waitMs);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/**
 * Acquires a lock that excludes other processes and other callers in this one. The system releases
 * it when the process ends for any reason; the file stays, and its existence means nothing. The file
 * is an empty SQLite database, because Node itself cannot lock files.
 *
 * @param waitMs maximum wait for the current holder.
 * @throws ServiceError `conflict`, reason `locked`; `output_not_writable`; `invalid_data`, reason
 * `foreign_owner`, in a directory of another user.
 */
export async function holdLock(path: string, waitMs: number): Promise<Lock> {
  prepare(path);
  const until = performance.now() + Math.max(waitMs, PROBE_MS);
  const file = fileAt(path);
  const database = openDatabase(path);
  try {
    while (!take(database, path, IN_MEMORY, 'BEGIN EXCLUSIVE')) {
      if (performance.now() >= until) throw locked(path);
      await wait(RETRY_MS);
    }
  } catch (error) {
    database.close();
    throw error;
  }
  return {
    release: () => database.close(),
    isInPlace: () => [file, undefined].includes(fileAt(path)),
  };
}

/**
 * Runs `work` while holding the lock, and blocks this thread while another caller holds it.
 *
 * @param waitMs maximum wait for the current holder.
 * @throws ServiceError as `holdLock`
 */
export function withLockSync<T>(path: string, waitMs: number, work: () => T): T {
  prepare(path);
  const database = openDatabase(path, { timeout: waitMs });
  try {
    if (!take(database, path, IN_MEMORY, 'BEGIN EXCLUSIVE')) throw locked(path);
    return work();
  } finally {
    database.close();
  }
}

/** A journal on disk needs space there, and a killed process would leave it behind. */
const IN_MEMORY = 'PRAGMA journal_mode = memory';

/** Identifies the file at a path: `none` if it does not exist, undefined if that cannot be determined. */
function fileAt(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev} ${ino}`;
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return 'none';
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/** @throws ServiceError `output_not_writable` if this user cannot determine it. */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const database = openDatabase(path, { readonly: true });
  try {
    return !take(database, path, 'SELECT 1 FROM sqlite_schema');
  } finally {
    database.close();
  }
}

/** Does not open an existing file: closing it would release the locks that this process has on it. */
function prepare(path: string): void {
  try {
    makeDirectory(dirname(path), 0o700);
    // A user cannot lock files that root creates in the user's home.
    checkOwner(dirname(path), statSync(dirname(path)));
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return;
    if (!isSystemError(error)) throw error;
    throw unusable(path, error);
  }
}

function openDatabase(path: string, options: Database.Options = {}): Database.Database {
  try {
    return new Database(path, { fileMustExist: true, timeout: 0, ...options });
  } catch (error) {
    throw unusable(path, error);
  }
}

/** Returns false if another caller holds the lock. */
function take(database: Database.Database, path: string, ...commands: readonly string[]): boolean {
  try {
    for (const sql of commands) {
      const statement = database.prepare(sql);
      if (statement.reader) statement.all();
      else statement.run();
    }
    return true;
  } catch (error) {
    if (error instanceof SqliteError && error.code.startsWith('SQLITE_BUSY')) return false;
    throw unusable(path, error);
  }
}

function locked(path: string): ServiceError {
  return new ServiceError('conflict', `another process holds the lock ${path}`, {
    reason: 'locked',
    remedy: 'Try again when that process has finished.',
  });
}

function unusable(path: string, cause: unknown): ServiceError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new ServiceError('output_not_writable', `${path} cannot be locked: ${why}`, {
    remedy: 'Check that this user can write to the directory, and that the file is empty.',
    cause,
  });
}
