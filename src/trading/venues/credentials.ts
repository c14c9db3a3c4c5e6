import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';

/** Credentials of an account at an exchange. Never log or return them. */
export interface Credentials {
  readonly apiKey: string;
  readonly secret: string;
  readonly password?: string;
  readonly uid?: string;
}

const OPTIONAL = ['password', 'uid'] as const;

/**
 * Reads one file per field from a directory, such as a mounted secret. Surrounding white space is
 * ignored.
 *
 * @throws ServiceError `file_not_found` for a missing file, `invalid_data` for an empty one.
 */
export function readCredentials(dir: string): Credentials {
  const read = (name: string): string => {
    const file = join(dir, name);
    try {
      const text = readFileSync(file, 'utf8').trim();
      if (text !== '') return text;
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
      throw new ServiceError(
        'file_not_found',
        `file ${file} with credentials of the exchange is missing`,
        {
          remedy:
            'Write the files apiKey and secret to this directory, and password and uid if the exchange uses them.',
        },
      );
    }
    throw new ServiceError('invalid_data', `${file} is empty`, {
      remedy: 'Write the value from the exchange to this file.',
    });
  };
  const optional = OPTIONAL.flatMap((name) => {
    try {
      return [[name, read(name)]];
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'file_not_found') return [];
      throw error;
    }
  });
  return { apiKey: read('apiKey'), secret: read('secret'), ...Object.fromEntries(optional) };
}

const SHORTEST_SECRET = 4;
const SHORTEST_LINE = 16;

/**
 * Creates a function that removes credentials from a text, in every form in which ccxt sends them.
 * It also removes query strings and signatures.
 */
export function createRedactor(credentials: Credentials): (text: string) => string {
  const texts = Object.values(credentials as unknown as Record<string, string>).flatMap((text) => [
    text,
    // An error may quote single lines of a key.
    ...text.split(/\s+/).filter((line) => line.length >= SHORTEST_LINE),
  ]);
  const forms = texts
    .flatMap((text) => [
      text,
      encodeURIComponent(text),
      JSON.stringify(text).slice(1, -1),
      Buffer.from(text).toString('base64'),
    ])
    .filter((form) => form.length >= SHORTEST_SECRET)
    .sort((a, b) => b.length - a.length);
  return (text) =>
    forms
      .reduce((rest, form) => rest.replaceAll(form, '…'), text)
      // Query strings of order requests contain signatures.
      .replaceAll(/(?<=\w:\/\/[^\s"'?]*)\?[^\s"']*/g, '?…')
      .replaceAll(/(?<=signature["']?\s*[=:]\s*["']?)[\w%+/-]+/gi, '…');
}
