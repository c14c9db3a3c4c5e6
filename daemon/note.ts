import { readFileSync, readlinkSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isLocked } from '../src/base/file-lock.ts';
import { readPrivateFile, writePrivateFile } from '../src/base/private-file.ts';
import { ServiceError } from '../src/base/errors.ts';
import { isSystemError } from '../src/base/system-errors.ts';
import { systemBoot } from '../src/gate/boot.ts';
import { isJsonObject } from '../src/lease/json.ts';
import { packageVersion } from '../src/base/package-version.ts';
import type { DaemonFiles } from './daemon-files.ts';

/** Content of `daemon.json`, which describes the daemon. Only the holder of the daemon lock writes it. */
export interface DaemonNote {
  readonly schema: 1;
  readonly pid: number;
  /** Distinguishes processes with the same pid; null if the system does not provide it. */
  readonly process: ProcessMark | null;
  readonly version: string;
  readonly started_at: string;
  /** Null while the daemon runs, and after it was killed. */
  readonly stopped_at: string | null;
  readonly server_url: string;
  /** Fingerprint of the pinned root; absent in the notes of earlier versions. */
  readonly license_root?: string | null | undefined;
  /** Directory for which it was written; a copy of the note in another home is ignored. */
  readonly home?: HomeMark | undefined;
}

/** Identifies a directory; as text, because an inode number may exceed 2^53. */
interface HomeMark {
  readonly device: string;
  readonly inode: string;
}

/** Distinguishes a process from others with the same pid, later or in another container. */
interface ProcessMark {
  readonly boot_id: string;
  /** Namespace in which the pid is valid. */
  readonly pid_namespace: string;
  /** Start time in ticks since boot. */
  readonly started: string;
}

export function newNote(server_url: string, pin?: string): DaemonNote {
  return {
    schema: 1,
    pid: process.pid,
    process: markOf(process.pid) ?? null,
    version: packageVersion(),
    started_at: new Date().toISOString(),
    stopped_at: null,
    server_url,
    license_root: pin ?? null,
  };
}

/** @throws ServiceError as `writePrivateFile` */
export async function writeNote(path: string, note: DaemonNote): Promise<void> {
  const text = JSON.stringify({ ...note, home: await homeOf(path) }, undefined, 2);
  await writePrivateFile(path, `${text}\n`);
}

/**
 * Reads the note of the last daemon of a home; returns undefined if it is missing or unusable, or was
 * copied with the files of another home.
 */
export async function readNote(path: string): Promise<DaemonNote | undefined> {
  try {
    const note: unknown = JSON.parse((await readPrivateFile(path)) ?? 'null');
    return isNote(note) && (await isOfHome(note, path)) ? note : undefined;
  } catch (error) {
    if (error instanceof ServiceError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

async function homeOf(path: string): Promise<HomeMark | undefined> {
  try {
    const { dev, ino } = await stat(dirname(path), { bigint: true });
    return { device: String(dev), inode: String(ino) };
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/** Notes of earlier versions name no home, so they count for any. */
async function isOfHome({ home, process: mark }: DaemonNote, path: string): Promise<boolean> {
  const here = await homeOf(path);
  if (home === undefined || here === undefined) return true;
  // The number of a device may change when the machine starts, and differs on other machines.
  const isSameBoot = mark === null || mark.boot_id === systemBoot().boot_id;
  return home.inode === here.inode && (!isSameBoot || home.device === here.device);
}

function isNote(value: unknown): value is DaemonNote {
  if (!isJsonObject(value)) return false;
  const { schema, pid, process: mark, version, started_at, stopped_at, server_url, home } = value;
  const { license_root = null } = value;
  const areTexts = (...texts: unknown[]): boolean => texts.every((one) => typeof one === 'string');
  return (
    schema === 1 &&
    Number.isSafeInteger(pid) &&
    Number(pid) > 1 &&
    (mark === null ||
      (isJsonObject(mark) && areTexts(mark['boot_id'], mark['pid_namespace'], mark['started']))) &&
    areTexts(version, started_at, server_url) &&
    (stopped_at === null || areTexts(stopped_at)) &&
    (license_root === null || areTexts(license_root)) &&
    (home === undefined || (isJsonObject(home) && areTexts(home['device'], home['inode'])))
  );
}

/** Returns where the process of a note runs; only for `here` does its pid identify it. */
export function locateProcess({ pid, process: mark }: DaemonNote): 'here' | 'gone' | 'elsewhere' {
  if (mark === null) return 'here';
  const own = markOf(process.pid);
  const isSame = (name: keyof ProcessMark): boolean => own?.[name] === mark[name];
  if (!isSame('boot_id') || !isSame('pid_namespace')) return 'elsewhere';
  return markOf(pid)?.started === mark.started ? 'here' : 'gone';
}

/** Whether the process exists, even if its lock file was removed; false where the system cannot tell. */
function isAlive(note: DaemonNote | undefined): boolean {
  if (note === undefined || note.process === null || note.stopped_at !== null) return false;
  return locateProcess(note) === 'here';
}

export interface FoundDaemon {
  readonly isRunning: boolean;
  readonly note: DaemonNote | undefined;
}

/** @throws ServiceError where the lock cannot be examined */
export async function findDaemon({ lock, note: path }: DaemonFiles): Promise<FoundDaemon> {
  const isHeld = isLocked(lock);
  const note = await readNote(path);
  return { isRunning: isHeld || isAlive(note), note };
}

/** See proc_pid_stat(5) and namespaces(7). */
function markOf(pid: number): ProcessMark | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field, the name, is in parentheses and may contain any characters.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A zombie keeps its pid until its parent reads its exit status.
    const started = fields[0] === 'Z' ? undefined : fields[19];
    const pid_namespace = readlinkSync('/proc/self/ns/pid');
    return started === undefined
      ? undefined
      : { boot_id: systemBoot().boot_id, pid_namespace, started };
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
