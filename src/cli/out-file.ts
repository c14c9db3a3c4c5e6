import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ServiceError } from '../base/errors.ts';
import { isSystemError, writeRemedy } from '../base/system-errors.ts';

export interface OutFile {
  readonly path: string;
  /** Kind of document, with its article: `a lease`. */
  readonly kind: string;
  /** Whether an existing text is of this kind and may be replaced. */
  readonly isOne: (text: string) => boolean;
}

/**
 * Checks that a file can be written, before anything happens whose result would be lost.
 * @throws ServiceError `output_not_writable`; `conflict` if the file exists and is of another kind
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
  throw new ServiceError('conflict', `${path} exists and is not ${kind}`, {
    remedy: 'Nothing was done. Name another file.',
  });
}

/**
 * Writes a file that only this user can read.
 * @param failure message of the error if the file cannot be written.
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
