import { constants, type Stats } from 'node:fs';
import { lstat, open, readFile, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { replaceFile, syncDirectory, writeAtomically } from '../base/atomic-file.ts';
import { isSystemError, ServiceError, writeRemedy } from '../base/errors.ts';
import { makeDirectory } from '../base/make-directory.ts';

/** Far more than any of these files takes. */
const MAX_BYTES = 256 * 1024;

/**
 * Writes a file that only this user can read. Its directory is made when it is not there. Once this
 * has returned, the file outlasts a power cut.
 *
 * @throws ServiceError `output_not_writable`; `invalid_data` where others could put files of theirs
 * into the directory.
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
      `${path} was not changed: what was written for it reads otherwise`,
      { remedy: 'See that the disk is sound.' },
    );
  };
}

/**
 * The same, but a file that is there stays as it is.
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
 * Lets one such file take the place of another, for good once this has returned.
 * @throws ServiceError `output_not_writable`
 */
export async function replacePrivateFile(from: string, to: string): Promise<void> {
  await writing(to, () => replaceFile(from, to));
}

/**
 * Sees that a file of this user, or nothing, is where one is to be written.
 * @throws ServiceError `invalid_data`, with a reason, for a link, what is no file, and a file of
 * another user; `output_not_writable` where that cannot be seen.
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
  if (!stats.isFile()) throw refused(path, 'not_a_file', 'is no file', 'Move away what is there.');
  checkOwner(path, stats);
  return stats;
}

/** @throws ServiceError `output_not_writable` for what the system refuses. */
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
 * The text of a file that nobody else can have read or changed; undefined when there is no file.
 *
 * @throws ServiceError `invalid_data`, with a reason, for a link, a file of another user or one that
 * is open to others, and what is no file.
 */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    // Without O_NONBLOCK a pipe at this place would make the opening wait for ever.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    if (isSystemError(error, 'ELOOP')) {
      throw isLink(path);
    }
    if (!isSystemError(error)) throw error;
    throw refused(path, 'unreadable', `cannot be read: ${error.message}`, 'See its permissions.');
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_BYTES) {
      throw refused(path, 'not_a_file', 'is no file of the usual size', 'See what is there.');
    }
    checkOwner(path, stats);
    checkMode(path, stats, 0o077, 'read or changed', 'service-local doctor --fix');
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** @throws ServiceError `invalid_data`, reason `foreign_owner`, for what is another user's. */
export function checkOwner(path: string, { uid }: Pick<Stats, 'uid'>): void {
  const user = process.getuid?.();
  if (user === undefined || uid === user) return;
  const why = `belongs to the user ${uid}, and this runs as ${user}`;
  const remedy = `Run this as that user; or, where it is to be this user's, \`sudo chown ${user} ${path}\`.`;
  throw refused(path, 'foreign_owner', why, remedy);
}

/** @param forbidden permissions that nobody but the owner may have; on Windows there are none. */
function checkMode(
  path: string,
  { mode }: Stats,
  forbidden: number,
  done: string,
  command: string,
): void {
  if (process.getuid === undefined || (mode & forbidden) === 0) return;
  const why = `can be ${done} by others`;
  throw refused(path, 'not_private', why, `Run \`${command}\`.`);
}

function isLink(path: string): ServiceError {
  return refused(path, 'symlink', 'is a link', 'Put the file itself there.');
}

function refused(path: string, reason: string, why: string, remedy: string): ServiceError {
  return new ServiceError('invalid_data', `${path} ${why}`, { reason, remedy });
}
