import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isSystemError } from './system-errors.ts';

/**
 * Creates a directory and its missing parents. Node's `recursive` option never returns in /proc,
 * where each new directory is reported as missing.
 *
 * @param mode permissions of new directories; by default as the umask allows.
 * @returns the new directories, outermost first.
 * @throws the system's error, also if the path exists and is not a directory.
 */
export function makeDirectory(path: string, mode?: number): readonly string[] {
  const missing = [resolve(path)];
  while (!existsSync(dirname(missing[0]!))) missing.unshift(dirname(missing[0]!));
  const created: string[] = [];
  for (const directory of missing) {
    try {
      mkdirSync(directory, mode);
      created.push(directory);
    } catch (error) {
      if (!isSystemError(error, 'EEXIST') || !isDirectory(directory)) throw error;
    }
  }
  return created;
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Returns the path, or the nearest directory above it that exists. */
export function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}
