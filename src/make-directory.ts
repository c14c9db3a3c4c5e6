import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isSystemError } from './errors.ts';

/**
 * Makes the directory, and those above it that are not there. Not with `recursive` of Node, which
 * goes on for ever where the system says of every new directory that it is not there, as in /proc.
 *
 * @param mode of the new ones; by default what the umask leaves.
 * @throws the error of the system, also for a path at which there is something else.
 */
export function makeDirectory(path: string, mode?: number): void {
  const missing = [resolve(path)];
  while (!existsSync(dirname(missing[0]!))) missing.unshift(dirname(missing[0]!));
  for (const directory of missing) {
    try {
      mkdirSync(directory, mode);
    } catch (error) {
      if (!isSystemError(error, 'EEXIST') || !isDirectory(directory)) throw error;
    }
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
