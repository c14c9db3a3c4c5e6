import { randomBytes } from 'node:crypto';
import { link, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isSystemError } from './errors.ts';
import { ownerName, ownerState } from './file-owner.ts';

export interface AtomicWriteOptions {
  /** Permissions of the new file; by default what the umask leaves. */
  readonly mode?: number;
  /** Fails with `EEXIST` instead of taking the place of a file that is there. */
  readonly exclusive?: boolean;
  /**
   * Told where the new file is before it takes its place; when it throws, all is as before.
   */
  readonly check?: (temporary: string) => Promise<void>;
  /**
   * Whether temporary files that dead processes left beside this file stay; by default they are
   * removed once the new file is in place.
   */
  readonly keepAbandoned?: boolean;
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
  { mode, exclusive = false, check, keepAbandoned = false }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = temporaryOf(path);
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
    for (const suffix of ['', ...BESIDE_SQLITE]) {
      await rm(temporary + suffix, { force: true }).catch(() => undefined);
    }
    throw error;
  }
  if (!keepAbandoned) await removeAbandoned(dirname(path), { of: basename(path) });
}

/**
 * The name contains the id of the writing process, so that other processes can detect an abandoned
 * file.
 */
function temporaryOf(path: string): string {
  return `${path}.${ownerName()}.${randomBytes(8).toString('hex')}.tmp`;
}

/** Makes sure that files can be created in a directory. @throws the system's error if not. */
export async function tryToWriteInto(directory: string): Promise<void> {
  const probe = temporaryOf(join(directory, '.probe'));
  await (await open(probe, 'wx', 0o600)).close();
  await rm(probe);
}

/** Whether a file of that name is one that `writeAtomically` was writing. */
export function isTemporary(name: string): boolean {
  return /\.[0-9a-f]{16}\.tmp$/.test(name);
}

/** Suffixes of the files that SQLite makes beside a database. */
const BESIDE_SQLITE = ['-wal', '-shm', '-journal'];

const TEMPORARY = /^(.*?)(?:\.(\d+-\d+-[0-9a-f]{8}))?\.[0-9a-f]{16}\.tmp(?:-wal|-shm|-journal)?$/;

const DAY_MS = 86_400_000;

export interface AbandonedOptions {
  /** Name of the written file; any by default. */
  readonly of?: string;
  /**
   * How long a file stays after its last write if its process cannot be checked, ms: a process on
   * another host or in another container that shares the directory. Default: one day.
   */
  readonly unknownAfterMs?: number;
}

/**
 * Removes from a directory what `writeAtomically` was writing there when its process was killed, if
 * the system lets it. The file of a process that is alive stays, however old it is.
 */
export async function removeAbandoned(
  directory: string,
  { of, unknownAfterMs = DAY_MS }: AbandonedOptions = {},
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
    // Another process has moved or removed it, or it cannot be removed. The caller's own file is
    // written, so this is no error for the caller.
    if (!isSystemError(error)) throw error;
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
