import { readFileSync, statSync } from 'node:fs';
import { basename, relative, resolve, sep } from 'node:path';
import { MAX_DOCUMENT_BYTES } from '../base/document-size.ts';
import { isSystemError, ServiceError } from '../base/errors.ts';

/** A file as a document. */
export interface DocumentFile {
  readonly file: string;
  /** The path from the working directory; outside of it, that of the file alone. */
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
    // Before it is read: it may be anything.
    if (statSync(path).size > MAX_DOCUMENT_BYTES) {
      throw invalidError(
        file,
        `is over ${MAX_DOCUMENT_BYTES / 1024} KiB`,
        'Cut it into several files.',
      );
    }
    const text = UTF8.decode(readFileSync(path));
    if (!text.includes('\0')) return text;
  } catch (error) {
    if (isSystemError(error)) {
      throw new ServiceError('file_not_found', `${file} cannot be read (${error.code})`, {
        cause: error,
      });
    }
    if (!(error instanceof TypeError)) throw error;
  }
  throw invalidError(file, 'is no text in UTF-8', 'Turn it into Markdown or plain text first.');
}

function invalidError(file: string, what: string, remedy: string): ServiceError {
  return new ServiceError('invalid_data', `${file} ${what}`, { remedy });
}
