import { constants, type Stats } from 'node:fs';
import { lstat, open, readFile, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { replaceFile, syncDirectory, writeAtomically } from './atomic-file.ts';
import { ServiceError } from './errors.ts';
import { isSystemError, writeRemedy } from './system-errors.ts';
import { makeDirectory } from './make-directory.ts';

/** Well above the size of any of these files. */
const MAX_BYTES = 256 * 1024;

/**
 * Writes a file that only this user can read, and creates its directory if necessary. After this
 * returns, the file survives a power failure.
 *
 * @throws ServiceError `output_not_writable`; `invalid_data` if other users can write to the directory.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await writing(path, async () => {
    await prepareDirectory(dirname(path));
    await writeAtomically(path, [text], {
      mode: 0o600,
      check: readBack(path, text),
      keepAbandoned: true,
    });
  });
}

function readBack(path: string, text: string): (temporary: string) => Promise<void> {
  return async (temporary) => {
    if ((await readFile(temporary, 'utf8')) === text) return;
    throw new ServiceError(
      'output_not_writable',
      `${path} was not changed: the new content could not be read back as it was written`,
      { remedy: 'Check the disk for errors.' },
    );
  };
}

/**
 * Like `writePrivateFile`, but leaves an existing file unchanged.
 * @throws ServiceError as `writePrivateFile`
 */
export async function createPrivateFile(path: string, text: string): Promise<void> {
  await writing(path, async () => {
    await prepareDirectory(dirname(path));
    try {
      const check = readBack(path, text);
      await writeAtomically(path, [text], {
        mode: 0o600,
        exclusive: true,
        check,
        keepAbandoned: true,
      });
    } catch (error) {
      if (!isSystemError(error, 'EEXIST')) throw error;
    }
  });
}

/**
 * Renames a private file over another one, durably.
 * @throws ServiceError `output_not_writable`
 */
export async function replacePrivateFile(from: string, to: string): Promise<void> {
  await writing(to, () => replaceFile(from, to));
}

/**
 * Checks that a path is free or holds a file of this user; returns undefined if it is free.
 * @throws ServiceError `invalid_data`, with a reason, for a link, something other than a file, or a
 * file of another user; `output_not_writable` if the path cannot be inspected.
 */
export async function checkPlace(path: string): Promise<Stats | undefined> {
  const stats = await writing(path, async () => {
    try {
      return await lstat(path);
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    }
  });
  if (stats === undefined) return undefined;
  if (stats.isSymbolicLink()) throw isLink(path);
  if (!stats.isFile())
    throw fileError(path, 'not_a_file', 'is not a regular file', 'Move it away.');
  checkOwner(path, stats);
  return stats;
}

/** Runs `work`, and converts system errors to ServiceError `output_not_writable`. */
export async function writing<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('output_not_writable', `${path}: ${error.message}`, {
      remedy: writeRemedy(error, 'Make sure that this user may write there.'),
      cause: error,
    });
  }
}

async function prepareDirectory(path: string): Promise<void> {
  for (const made of makeDirectory(path, 0o700)) await syncDirectory(dirname(made));
  const stats = await stat(path);
  checkOwner(path, stats);
  checkMode(path, stats, 0o022, 'written to', `chmod 700 ${path}`);
}

/**
 * Reads a file that no other user can read or change; returns undefined if there is no file.
 *
 * @throws ServiceError `invalid_data`, with a reason, for a link, something other than a file, or a
 * file that belongs to or is accessible by other users.
 */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    // Without O_NONBLOCK, opening a pipe would wait forever.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    if (isSystemError(error, 'ELOOP')) throw isLink(path);
    if (!isSystemError(error)) throw error;
    throw fileError(
      path,
      'unreadable',
      `cannot be read: ${error.message}`,
      'Check its permissions.',
    );
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_BYTES) {
      throw fileError(
        path,
        'not_a_file',
        'is not a regular file of the expected size',
        'Move it away.',
      );
    }
    checkOwner(path, stats);
    checkMode(path, stats, 0o077, 'read or changed', 'service-local doctor --fix');
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** @throws ServiceError `invalid_data`, reason `foreign_owner`, for a file of another user. */
export function checkOwner(path: string, { uid }: Pick<Stats, 'uid'>): void {
  const user = process.getuid?.();
  if (user === undefined || uid === user) return;
  const why = `belongs to user ${uid}, but this process runs as user ${user}`;
  const remedy = `Run the command as that user, or take over the file with \`sudo chown ${user} ${path}\`.`;
  throw fileError(path, 'foreign_owner', why, remedy);
}

/** @param forbidden mode bits that must not be set; Windows has none. */
function checkMode(
  path: string,
  { mode }: Stats,
  forbidden: number,
  done: string,
  command: string,
): void {
  if (process.getuid === undefined || (mode & forbidden) === 0) return;
  const why = `can be ${done} by other users`;
  throw fileError(path, 'not_private', why, `Run \`${command}\`.`);
}

function isLink(path: string): ServiceError {
  return fileError(path, 'symlink', 'is a symbolic link', 'Replace the link with the file itself.');
}

function fileError(path: string, reason: string, why: string, remedy: string): ServiceError {
  return new ServiceError('invalid_data', `${path} ${why}`, { reason, remedy });
}
