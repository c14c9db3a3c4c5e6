import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parseDocument } from 'yaml';
import { writeAtomically } from '../base/atomic-file.ts';
import { isSystemError } from '../base/system-errors.ts';
import type { SettingKey } from '../base/settings.ts';

/**
 * Appends a setting to the user file, and leaves the existing text as it is.
 *
 * @returns the path of the file; undefined if it cannot be written, or if an appended line would not
 *   add exactly this setting.
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

/** Follows a symbolic link, so that the link is kept. */
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
