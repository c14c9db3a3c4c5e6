import { readFile } from 'node:fs/promises';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';

/** @throws ServiceError `file_not_found` */
export async function readNamedFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('file_not_found', `cannot read ${path} (${error.code})`, {
      remedy: 'Check the path and its permissions.',
      cause: error,
    });
  }
}
