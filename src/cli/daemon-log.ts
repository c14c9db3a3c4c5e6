import { open, stat } from 'node:fs/promises';
import type { DaemonFiles } from '../../daemon/daemon-files.ts';
import { isSystemError } from '../base/system-errors.ts';
import { isJsonObject } from '../lease/json.ts';

/** A line of the daemon's log. It may have more fields. */
export interface LogEntry {
  readonly time: string;
  readonly level: string;
  readonly msg: string;
}

export interface LogPart {
  readonly entries: readonly LogEntry[];
  readonly end: LogEnd;
}

interface LogEnd {
  /** Inode of the file, which changes when the log is rotated; 0 if the file is missing. */
  readonly ino: number;
  readonly bytes: number;
}

/** @throws a system error, unless the log is missing */
export async function readLog({ log, olderLog }: DaemonFiles): Promise<LogPart> {
  const older = await readFrom(olderLog, 0);
  const { text, end } = await readFrom(log, 0);
  return { entries: parseEntries(older.text + text), end };
}

/** Reads the entries after `since`, also if the log was rotated in between. */
export async function readLogSince(
  { log, olderLog }: DaemonFiles,
  since: LogEnd,
): Promise<LogPart> {
  const isSame = (await inodeOf(log)) === since.ino;
  const wasRenamed = !isSame && (await inodeOf(olderLog)) === since.ino;
  const rest = wasRenamed ? await readFrom(olderLog, since.bytes) : undefined;
  const { text, end } = await readFrom(log, isSame ? since.bytes : 0);
  return { entries: parseEntries((rest?.text ?? '') + text), end };
}

/** Skips lines that are incomplete because the machine lost power. */
function parseEntries(text: string): readonly LogEntry[] {
  return text.split('\n').flatMap((line) => {
    try {
      const entry: unknown = JSON.parse(line);
      return isEntry(entry) ? [entry] : [];
    } catch {
      return [];
    }
  });
}

function isEntry(value: unknown): value is LogEntry {
  if (!isJsonObject(value)) return false;
  return ['time', 'level', 'msg'].every((name) => typeof value[name] === 'string');
}

async function inodeOf(path: string): Promise<number> {
  return (await ignoreMissing(stat(path)))?.ino ?? 0;
}

/** Reads complete lines from the byte `start`. */
async function readFrom(path: string, start: number): Promise<{ text: string; end: LogEnd }> {
  const file = await ignoreMissing(open(path, 'r'));
  if (file === undefined) return { text: '', end: { ino: 0, bytes: 0 } };
  try {
    const { ino, size } = await file.stat();
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(Math.max(0, size - start)),
      position: start,
    });
    const whole = buffer.subarray(0, bytesRead).lastIndexOf('\n') + 1;
    return { text: buffer.toString('utf8', 0, whole), end: { ino, bytes: start + whole } };
  } finally {
    await file.close();
  }
}

async function ignoreMissing<T>(looking: Promise<T>): Promise<T | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}
