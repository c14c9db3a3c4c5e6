import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isSystemError } from './errors.ts';

/**
 * Makes the directory, and those above it that are not there. Not with `recursive` of Node, which
 * goes on for ever where the system says of every new directory that it is not there, as in /proc.
 *
 * @param mode of the new ones; by default what the umask leaves.
 * @returns the new ones, the uppermost first.
 * @throws the error of the system, also for a path at which there is something else.
 */
export function makeDirectory(path: string, mode?: number): readonly string[] {
  const missing = [resolve(path)];
  while (!existsSync(dirname(missing[0]!))) missing.unshift(dirname(missing[0]!));
  const made: string[] = [];
  for (const directory of missing) {
    try {
      mkdirSync(directory, mode);
      made.push(directory);
    } catch (error) {
      if (!isSystemError(error, 'EEXIST') || !isDirectory(directory)) throw error;
    }
  }
  return made;
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** The path, or the nearest of the directories above it that is there. */
export function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}
