import { DAY } from './durations.ts';
import { randomBytes } from 'node:crypto';
import { link, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isSystemError } from './system-errors.ts';
import { ownerName, ownerState } from './file-owner.ts';

export interface AtomicWriteOptions {
  /** Fails with `EEXIST` instead of replacing an existing file. */
  readonly exclusive?: boolean;
  /** Called with the path of the complete temporary file. If it throws, nothing is replaced. */
  readonly check?: (temporary: string) => Promise<void>;
  /** Keeps temporary files that dead processes left beside this file. Default: removes them. */
  readonly keepAbandoned?: boolean;
}

/**
 * Writes the parts in order to a temporary file beside `path`, then renames it to `path`. Readers
 * see either the old or the complete new content, even after a crash; the new content is durable
 * when this resolves. The temporary name is unpredictable, so that no one can place a symbolic link
 * there.
 *
 * @param options.mode permissions of the new file; by default as the umask allows
 */
export async function writeAtomically(
  path: string,
  parts: Iterable<string | Uint8Array> | AsyncIterable<Uint8Array>,
  { mode, ...options }: AtomicWriteOptions & { readonly mode?: number } = {},
): Promise<void> {
  const fill = async (temporary: string): Promise<void> => {
    const file = await open(temporary, 'wx', mode);
    try {
      for await (const part of parts) await file.writeFile(part);
      await file.sync();
    } finally {
      await file.close();
    }
  };
  await fillAtomically(path, fill, options);
}

/**
 * Lets `fill` create a durable file at a temporary path, then replaces `path` as `writeAtomically` does.
 */
export async function fillAtomically(
  path: string,
  fill: (temporary: string) => Promise<void>,
  { exclusive = false, check, keepAbandoned = false }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = temporaryOf(path);
  try {
    await fill(temporary);
    await check?.(temporary);
    if (exclusive) {
      await link(temporary, path);
      await rm(temporary);
    } else {
      await rename(temporary, path);
    }
    await syncDirectory(dirname(path));
  } catch (error) {
    // If the removal fails too, the first error is the more useful one.
    for (const suffix of ['', ...BESIDE_SQLITE]) {
      await rm(temporary + suffix, { force: true }).catch(() => undefined);
    }
    throw error;
  }
  if (!keepAbandoned) await removeAbandoned(dirname(path), { of: basename(path) });
}

/** The name identifies the writing process, so that other processes can detect an abandoned file. */
function temporaryOf(path: string): string {
  return `${path}.${ownerName()}.${randomBytes(8).toString('hex')}.tmp`;
}

/** Creates and removes a file in the directory. @throws the system's error if that fails. */
export async function tryToWriteInto(directory: string): Promise<void> {
  const probe = temporaryOf(join(directory, '.probe'));
  await (await open(probe, 'wx', 0o600)).close();
  await rm(probe);
}

/** Whether the name is that of a temporary file of `writeAtomically`. */
export function isTemporary(name: string): boolean {
  return /\.[0-9a-f]{16}\.tmp$/.test(name);
}

/** Suffixes of the files that SQLite creates beside a database. */
const BESIDE_SQLITE = ['-wal', '-shm', '-journal'];

const TEMPORARY = /^(.*?)(?:\.(\d+-\d+-[0-9a-f]{8}))?\.[0-9a-f]{16}\.tmp(?:-wal|-shm|-journal)?$/;

export interface AbandonedOptions {
  /** Name of the file that was being written; any by default. */
  readonly of?: string;
  /**
   * Age from which a file counts as abandoned if its process cannot be checked because it runs on
   * another host or in another container, ms since the last write. Default: one day.
   */
  readonly unknownAfterMs?: number;
}

/**
 * Removes temporary files that killed processes left in the directory. Files of running processes
 * stay, whatever their age. System errors are ignored.
 */
export async function removeAbandoned(
  directory: string,
  { of, unknownAfterMs = DAY }: AbandonedOptions = {},
): Promise<void> {
  try {
    for (const name of await readdir(directory)) {
      const [, target, owner] = TEMPORARY.exec(name) ?? [];
      if (target === undefined || (of !== undefined && target !== of)) continue;
      await removeIfAbandoned(join(directory, name), owner, unknownAfterMs);
    }
  } catch (error) {
    if (!isSystemError(error)) throw error;
  }
}

async function removeIfAbandoned(
  path: string,
  owner: string | undefined,
  unknownAfterMs: number,
): Promise<void> {
  const state = owner === undefined ? 'unknown' : ownerState(owner);
  if (state === 'alive') return;
  try {
    const { mtimeMs } = await lstat(path);
    if (state === 'dead' || Date.now() - mtimeMs > unknownAfterMs) await rm(path);
  } catch (error) {
    // The caller's own file is written, so a leftover that cannot be removed is no error.
    if (!isSystemError(error)) throw error;
  }
}

/** Renames a file within its directory; the change is durable when this resolves. */
export async function replaceFile(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncDirectory(dirname(to));
}

/** Makes the names in a directory durable: without it, a power failure can undo a rename. */
export async function syncDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  } catch (error) {
    // Some systems and file systems do not support syncing a directory.
    if (!isSystemError(error, 'EINVAL', 'ENOTSUP', 'EISDIR', 'EPERM', 'EACCES')) throw error;
  }
}
