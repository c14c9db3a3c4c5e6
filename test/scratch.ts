import { readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const GIBIBYTE = 2 ** 30;
const MEMORY = '/dev/shm';

/** Directory for files that are flushed often, such as databases: in memory, given 1 GiB of space. */
export const SCRATCH = roomIn(MEMORY) >= GIBIBYTE ? MEMORY : tmpdir();

/**
 * Value of `tmpdir()` in tests: in memory, given space for all files of a run and permission to run
 * programs there. On a disk, creating and removing small files takes longer than most tests.
 */
export const TEMPORARY = roomIn(MEMORY) >= 4 * GIBIBYTE && canRunIn(MEMORY) ? MEMORY : tmpdir();

/** Free bytes; 0 if the folder does not exist. */
function roomIn(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

function canRunIn(folder: string): boolean {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
  const options = mounts.findLast((line) => line.split(' ')[1] === folder)?.split(' ')[3];
  return options !== undefined && !options.split(',').includes('noexec');
}
