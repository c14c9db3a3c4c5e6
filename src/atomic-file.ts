import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';

/**
 * Writes the parts, one after the other, to a new file beside `path` that then takes its place: who
 * looks there finds what was there before or all of the new, whatever happens meanwhile. Nobody can
 * know the new file's name beforehand and leave a link there that leads elsewhere.
 */
export async function writeAtomically(
  path: string,
  parts: Iterable<string | Uint8Array>,
): Promise<void> {
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx');
  try {
    try {
      for (const part of parts) await file.writeFile(part);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
