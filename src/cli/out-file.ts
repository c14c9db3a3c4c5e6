import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSystemError, ServiceError, writeRemedy } from '../base/errors.ts';

/** What a verb writes to a file that somebody then carries elsewhere. */
export interface OutFile {
  readonly path: string;
  /** What it is, with the article: `a lease`. */
  readonly kind: string;
  /** Whether a text that is there is such a thing, which may be replaced. */
  readonly isOne: (text: string) => boolean;
}

/**
 * Before anything is done of which the result could not be kept.
 * @throws ServiceError `output_not_writable`; `conflict` where another kind of file is.
 */
export async function checkOutFile({ path, kind, isOne }: OutFile): Promise<void> {
  let there: string | undefined;
  try {
    await access(dirname(path), constants.W_OK);
    there = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    });
  } catch (error) {
    throw notWritable(error, `cannot write ${path}`);
  }
  if (there === undefined || isOne(there)) return;
  throw new ServiceError('conflict', `${path} is there already, and is not ${kind}`, {
    remedy: 'Name another file. Nothing was done.',
  });
}

/**
 * Only this user can read it.
 * @param failure what to say when it cannot be written.
 * @throws ServiceError `output_not_writable`
 */
export async function writeOutFile(
  { path }: Pick<OutFile, 'path'>,
  text: string,
  failure = `cannot write ${path}`,
): Promise<void> {
  const { writeAtomically } = await import('../base/atomic-file.ts');
  try {
    await writeAtomically(path, [text], { mode: 0o600 });
  } catch (error) {
    throw notWritable(error, failure);
  }
}

function notWritable(error: unknown, message: string): unknown {
  if (!isSystemError(error)) return error;
  return new ServiceError('output_not_writable', `${message} (${error.code})`, {
    remedy: writeRemedy(error, 'Name a file in a directory that exists and that you may write to.'),
    cause: error,
  });
}
