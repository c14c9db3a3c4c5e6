import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { isSystemError } from './errors.ts';

/** Tells whether the process that created a file is still running. */
export type OwnerState = 'alive' | 'dead' | 'unknown';

let own: string | undefined;

/**
 * Identifies this process in a file name: `<pid>-<start time>-<process namespace>`. Two processes
 * never share it, even if they have the same pid, one after the other or in two containers.
 */
export function ownerName(): string {
  return (own ??= `${process.pid}-${startOf(process.pid) ?? 0}-${namespace()}`);
}

const OWNER = /^(\d+)-(\d+)-([0-9a-f]{8})$/;

/**
 * @param owner as returned by `ownerName`, possibly in another container or on another host.
 * @returns `unknown` if the owner belongs to another pid namespace, where its pid cannot be
 *   checked.
 */
export function ownerState(owner: string): OwnerState {
  const [, pid, start, where] = OWNER.exec(owner) ?? [];
  if (pid === undefined || where !== namespace()) return 'unknown';
  if (!exists(Number(pid))) return 'dead';
  const now = startOf(Number(pid));
  // A process that cannot be inspected counts as the owner.
  return now === undefined || now === start ? 'alive' : 'dead';
}

let known: string | undefined;

/**
 * Identifies the kernel's boot and the pid namespace. If the system does not provide them, the
 * value is random, so that no pid is compared across processes.
 */
function namespace(): string {
  if (known !== undefined) return known;
  let text: string;
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    text = `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    text = randomBytes(16).toString('hex');
  }
  return (known = createHash('sha256').update(text).digest('hex').slice(0, 8));
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isSystemError(error, 'ESRCH');
  }
}

/** Clock ticks from the boot to the start of a process; undefined where it cannot be read. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program name in parentheses may contain any character; field 22 is the 20th field after
    // it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
