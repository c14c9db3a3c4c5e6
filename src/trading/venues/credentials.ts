import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError, isSystemError } from '../../base/errors.ts';

/** What an exchange knows an account by. None of it may be shown to anyone. */
export interface Credentials {
  readonly apiKey: string;
  readonly secret: string;
  readonly password?: string;
  readonly uid?: string;
}

const OPTIONAL = ['password', 'uid'] as const;

/**
 * Reads the files of a directory that are called as the fields are, as a mounted secret has them;
 * white space around their texts is not theirs.
 *
 * @throws ServiceError `file_not_found` for the first that is missing, `invalid_data` for one that is
 *   empty.
 */
export function readCredentials(dir: string): Credentials {
  const read = (name: string): string => {
    const file = join(dir, name);
    try {
      const text = readFileSync(file, 'utf8').trim();
      if (text !== '') return text;
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
      throw new ServiceError('file_not_found', `the credentials of the exchange lack ${file}`, {
        remedy: 'Write the files apiKey and secret there, and password and uid where it has these.',
      });
    }
    throw new ServiceError('invalid_data', `${file} is empty`, {
      remedy: 'Write there what the exchange gave you.',
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

/** Takes out of a text what the credentials are, in every form in which ccxt sends them, and queries. */
export function hiderOf(credentials: Credentials): (text: string) => string {
  const texts = Object.values(credentials as unknown as Record<string, string>).flatMap((text) => [
    text,
    // A key of several lines may be quoted in part.
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
      // Signed, and with them the address of an order to whoever has them.
      .replaceAll(/(?<=\w:\/\/[^\s"'?]*)\?[^\s"']*/g, '?…')
      .replaceAll(/(?<=signature["']?\s*[=:]\s*["']?)[\w%+/-]+/gi, '…');
}
