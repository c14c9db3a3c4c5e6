import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSystemError } from './errors.ts';

export interface AtomicWriteOptions {
  /** Permissions of the new file; by default what the umask leaves. */
  readonly mode?: number;
}

/**
 * Writes the parts, one after the other, to a new file beside `path` that then takes its place: who
 * looks there finds what was there before or all of the new, whatever happens meanwhile, and all of
 * the new once this has returned. Nobody can know the new file's name beforehand and leave a link
 * there that leads elsewhere.
 */
export async function writeAtomically(
  path: string,
  parts: Iterable<string | Uint8Array>,
  { mode }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', mode);
  try {
    try {
      for (const part of parts) await file.writeFile(part);
      await file.sync();
    } finally {
      await file.close();
    }
    await replaceFile(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Lets a file take the place of another in the same directory, for good once this has returned. */
export async function replaceFile(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncDirectory(dirname(to));
}

/** Without it a power cut may bring back what was at the name before. */
async function syncDirectory(path: string): Promise<void> {
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
