import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { isSystemError } from './errors.ts';

/** Whether the process that made a file still runs. */
export type OwnerState = 'alive' | 'dead' | 'unknown';

let own: string | undefined;

/**
 * Names this process in the name of a file: `<pid>-<start time>-<process namespace>`. Two processes
 * never share it, even if they have the same pid, one after the other or in two containers.
 */
export function ownerName(): string {
  return (own ??= `${process.pid}-${startOf(process.pid) ?? 0}-${namespace()}`);
}

const OWNER = /^(\d+)-(\d+)-([0-9a-f]{8})$/;

/**
 * @param owner as `ownerName` gave it, perhaps in another container or on another host.
 * @returns `unknown` where the process does not belong to this process's namespace: its pid means
 *   nothing here.
 */
export function ownerState(owner: string): OwnerState {
  const [, pid, start, where] = OWNER.exec(owner) ?? [];
  if (pid === undefined || where !== namespace()) return 'unknown';
  if (!exists(Number(pid))) return 'dead';
  const now = startOf(Number(pid));
  // A process that may not be looked at is taken for the owner.
  return now === undefined || now === start ? 'alive' : 'dead';
}

let known: string | undefined;

/**
 * Identifies the kernel's boot and the pid namespace. Where the system does not tell them, it is a
 * random value, so that no other process is judged by its pid.
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
    // The name of the program, in parentheses, may hold anything; field 22 is the 20th after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
