import { existsSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Database, { SqliteError } from 'better-sqlite3';
import { isSystemError, ServiceError } from '../base/errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { checkOwner } from './private-file.ts';

const RETRY_MS = 25;

/** Whoever only looks keeps the lock for less than that, and is no reason to refuse it. */
const LOOK_MS = 250;

/** For what people have done: longer than a renewal takes, unless the server hardly answers. */
export const LOCK_PATIENCE_MS = 10_000;

export interface Lock {
  /** May be called again. */
  release(): void;
  /** False once the file at its path is another or none: whoever locks that has a lock, too. */
  isInPlace(): boolean;
}

/**
 * Does some work while it holds the lock.
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
 * Holds what no other process, and nobody else in this one, can hold at the same time. It ends with
 * the process however that ends: the file that stays says nothing, only the lock that the system
 * keeps on it. Node cannot lock files itself, SQLite can; the database stays empty.
 *
 * @param waitMs how long to wait for whoever holds it.
 * @throws ServiceError `conflict`, reason `locked`; `output_not_writable`; `invalid_data`, reason
 * `foreign_owner`, in a directory of another user.
 */
export async function holdLock(path: string, waitMs: number): Promise<Lock> {
  await prepare(path);
  const until = performance.now() + Math.max(waitMs, LOOK_MS);
  const file = fileAt(path);
  const database = openDatabase(path, false);
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

/** A journal on disk would need room there, and be left by who is killed. */
const IN_MEMORY = 'PRAGMA journal_mode = memory';

/** Which file is there; undefined where that cannot be seen. */
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

/**
 * Whether somebody holds it.
 * @throws ServiceError `output_not_writable` where this user cannot see that.
 */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const database = openDatabase(path, true);
  try {
    return !take(database, path, 'SELECT 1 FROM sqlite_schema');
  } finally {
    database.close();
  }
}

/** A file that is there is not opened: to close it would end the locks that this process has on it. */
async function prepare(path: string): Promise<void> {
  try {
    makeDirectory(dirname(path), 0o700);
    // What root leaves in the home of a user, that user cannot lock.
    checkOwner(dirname(path), await stat(dirname(path)));
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return;
    if (!isSystemError(error)) throw error;
    throw unusable(path, error);
  }
}

function openDatabase(path: string, readonly: boolean): Database.Database {
  try {
    return new Database(path, { readonly, fileMustExist: true, timeout: 0 });
  } catch (error) {
    throw unusable(path, error);
  }
}

/** False when somebody else has it. */
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
  return new ServiceError('conflict', `${path} is held by another process`, {
    reason: 'locked',
    remedy: 'Run it again when that has ended.',
  });
}

function unusable(path: string, cause: unknown): ServiceError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new ServiceError('output_not_writable', `${path} cannot be locked: ${why}`, {
    remedy: 'See that this user may write there, and that the file is empty.',
    cause,
  });
}
