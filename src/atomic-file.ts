import { randomBytes } from 'node:crypto';
import { link, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isSystemError } from './errors.ts';

export interface AtomicWriteOptions {
  /** Permissions of the new file; by default what the umask leaves. */
  readonly mode?: number;
  /** Fails with `EEXIST` instead of taking the place of a file that is there. */
  readonly exclusive?: boolean;
  /**
   * Told where the new file is before it takes its place; when it throws, all is as before.
   */
  readonly check?: (temporary: string) => Promise<void>;
}

/**
 * Writes the parts, one after the other, to a new file beside `path` that then takes its place: who
 * looks there finds what was there before or all of the new, whatever happens meanwhile, and all of
 * the new once this has returned. Nobody can know the new file's name beforehand and leave a link
 * there that leads elsewhere.
 */
export async function writeAtomically(
  path: string,
  parts: Iterable<string | Uint8Array> | AsyncIterable<Uint8Array>,
  { mode, exclusive = false, check }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', mode);
  try {
    try {
      for await (const part of parts) await file.writeFile(part);
      await file.sync();
    } finally {
      await file.close();
    }
    await check?.(temporary);
    if (exclusive) {
      await link(temporary, path);
      await rm(temporary);
    } else {
      await rename(temporary, path);
    }
    await syncDirectory(dirname(path));
  } catch (error) {
    // Where that fails, too, the first error says more.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Whether a file of that name is one that `writeAtomically` was writing. */
export function isTemporary(name: string): boolean {
  return /\.[0-9a-f]{16}\.tmp$/.test(name);
}

/** How long a process can take from one part to the next. */
const ABANDONED_AFTER_MS = 60_000;

/**
 * Removes from a directory what `writeAtomically` was writing there when its process was killed, if
 * the system lets it.
 */
export async function removeAbandoned(directory: string): Promise<void> {
  const names = await readdir(directory);
  for (const name of names.filter(isTemporary)) {
    const path = join(directory, name);
    try {
      const { mtimeMs } = await lstat(path);
      if (Date.now() - mtimeMs > ABANDONED_AFTER_MS) await rm(path);
    } catch (error) {
      // Another process has put it into its place or removed it, or it cannot be removed: whoever
      // wrote a file must not hear of that as if the file were not written.
      if (!isSystemError(error)) throw error;
    }
  }
}

/** Lets a file take the place of another in the same directory, for good once this has returned. */
export async function replaceFile(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncDirectory(dirname(to));
}

/**
 * Lets the names in a directory outlast a power cut, which may otherwise bring back what was there
 * under these before.
 */
export async function syncDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  } catch (error) {
    // Not every system and file system can; those that cannot need not be told.
    if (!isSystemError(error, 'EINVAL', 'ENOTSUP', 'EISDIR', 'EPERM', 'EACCES')) throw error;
  }
}
