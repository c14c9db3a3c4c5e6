import { readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const GIBIBYTE = 2 ** 30;
const MEMORY = '/dev/shm';

/**
 * Where to make files that are flushed often, such as databases: in memory where Linux has a folder
 * for it with room (1 GiB; containers often give it little), as tests lose nothing with the power.
 */
export const SCRATCH = roomIn(MEMORY) >= GIBIBYTE ? MEMORY : tmpdir();

/**
 * What `tmpdir()` is in tests: there too, where there is room for all that a run makes, and where
 * programs may run that a test has put there. To make and remove small files costs a disk more than
 * what most tests do with them.
 */
export const TEMPORARY = roomIn(MEMORY) >= 4 * GIBIBYTE && canRunIn(MEMORY) ? MEMORY : tmpdir();

/** Bytes; 0 where there is no such folder. */
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
