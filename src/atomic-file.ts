import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Writes the parts, one after the other, to a new file beside `path` that then takes its place: who
 * looks there finds what was there before or all of the new, whatever happens meanwhile. Nobody can
 * know the new file's name beforehand and leave a link there that leads elsewhere.
 */
export function writeAtomically(path: string, parts: Iterable<string | Uint8Array>): void {
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  const file = openSync(temporary, 'wx');
  try {
    try {
      for (const part of parts) writeFileSync(file, part);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
