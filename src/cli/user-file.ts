import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parseDocument } from 'yaml';
import { writeAtomically } from '../base/atomic-file.ts';
import { isSystemError } from '../base/errors.ts';
import type { SettingKey } from '../base/settings.ts';

/**
 * Adds a setting that it does not have to the user file; what is there stays as it was typed.
 *
 * @returns the file; undefined where it cannot be written, or where one more line is not what adds a
 * setting to what is there.
 */
export async function addToUserFile(
  home: string,
  key: SettingKey,
  value: string,
): Promise<string | undefined> {
  const path = join(home, 'config.yaml');
  try {
    const { file, text: before, mode } = await readUserFile(path);
    const text = `${before}${/[^\n]$/.test(before) ? '\n' : ''}${key}: ${value}\n`;
    const wanted = { ...parseContent(before), [key]: value };
    if (!isDeepStrictEqual(parseContent(text), wanted)) return undefined;
    await writeAtomically(file, [text], { mode });
    return path;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/** A link is followed: some keep such files elsewhere. */
async function readUserFile(path: string) {
  try {
    const file = await realpath(path);
    return { file, text: await readFile(file, 'utf8'), mode: (await stat(file)).mode & 0o777 };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return { file: path, text: '', mode: 0o600 };
    throw error;
  }
}

function parseContent(text: string): object | undefined {
  const document = parseDocument(text);
  return document.errors.length > 0 ? undefined : ((document.toJS() ?? {}) as object);
}
