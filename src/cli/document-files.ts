import { readFileSync, statSync } from 'node:fs';
import { basename, relative, resolve, sep } from 'node:path';
import { MAX_DOCUMENT_BYTES } from '../base/document-size.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';

export interface DocumentFile {
  readonly file: string;
  /** Path relative to the working directory; the base name for a file outside of it. */
  readonly name: string;
  readonly text: string;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** @throws ServiceError `file_not_found`, `invalid_data` */
export function readDocumentFile(file: string, cwd: string): DocumentFile {
  const path = resolve(cwd, file);
  const below = relative(cwd, path);
  const name = below.startsWith(`..${sep}`) ? basename(path) : below.split(sep).join('/');
  return { file, name, text: readText(path, file) };
}

function readText(path: string, file: string): string {
  try {
    // Checked before reading, since the file may be huge.
    if (statSync(path).size > MAX_DOCUMENT_BYTES) {
      throw invalidError(
        file,
        `is over ${MAX_DOCUMENT_BYTES / 1024} KiB`,
        'Split it into several files.',
      );
    }
    const text = UTF8.decode(readFileSync(path));
    if (!text.includes('\0')) return text;
  } catch (error) {
    if (isSystemError(error)) {
      throw new ServiceError('file_not_found', `cannot read ${file} (${error.code})`, {
        cause: error,
      });
    }
    if (!(error instanceof TypeError)) throw error;
  }
  throw invalidError(file, 'is not UTF-8 text', 'Convert it to Markdown or plain text first.');
}

function invalidError(file: string, what: string, remedy: string): ServiceError {
  return new ServiceError('invalid_data', `${file} ${what}`, { remedy });
}
