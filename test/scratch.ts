import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/**
 * Where to make files that are flushed often, such as databases: in memory where Linux has a folder
 * for it with room (1 GiB; containers often give it little), as tests lose nothing with the power.
 */
export const SCRATCH = hasRoom('/dev/shm') ? '/dev/shm' : tmpdir();

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= 2 ** 30;
  } catch {
    return false;
  }
}
