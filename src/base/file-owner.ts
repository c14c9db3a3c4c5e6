import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { isSystemError } from './system-errors.ts';

/** Whether the process that created a file is still running. */
export type OwnerState = 'alive' | 'dead' | 'unknown';

let own: string | undefined;

/**
 * Identifies this process in a file name: `<pid>-<start time>-<process namespace>`. Two processes
 * never share it, even if they have the same pid, one after the other or in two containers.
 */
export function ownerName(): string {
  return (own ??= `${process.pid}-${statOf(process.pid)?.start ?? 0}-${namespace()}`);
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
  const now = statOf(Number(pid));
  // A process that cannot be inspected counts as the owner.
  if (now === undefined) return 'alive';
  return now.start === start && !now.hasEnded ? 'alive' : 'dead';
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

interface Stat {
  /** Clock ticks from the boot to its start. */
  readonly start: string | undefined;
  /** Whether it has exited, though its parent may not have read its exit code yet. */
  readonly hasEnded: boolean;
}

/** Reads the state of a process; undefined if it cannot be read. */
function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program name in parentheses may contain any character; field 3, the state, follows it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { start: fields[19], hasEnded: fields[0] === 'Z' || fields[0] === 'X' };
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
