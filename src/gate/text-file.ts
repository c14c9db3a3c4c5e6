import { constants, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { isSystemError } from '../base/system-errors.ts';
import type { LeaseReason } from '../lease/reasons.ts';

/** The content of a license file, or why it cannot be used. */
export type ReadText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: LeaseReason; readonly detail: string };

export interface TextFile {
  readonly path: string;
  readonly read: ReadText;
}

const MAX_BYTES = 64 * 1024;

/**
 * Reads a license file, following symbolic links as secret stores use them. Refuses a file that
 * another user owns or that other users can change; everyone may read it.
 */
export async function readTextFile(path: string): Promise<TextFile> {
  return { path, read: await readText(path) };
}

async function readText(path: string): Promise<ReadText> {
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe would wait forever.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile())
      return { ok: false, reason: 'unreadable', detail: `${path} is not a regular file` };
    const fault = accessFault(path, stats);
    if (fault !== undefined) return fault;
    if (stats.size > MAX_BYTES) {
      return { ok: false, reason: 'too_large', detail: `${path} has ${stats.size} bytes` };
    }
    return { ok: true, text: await file.readFile('utf8') };
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const { code, message } = error;
    return code === 'ENOENT' || code === 'ENOTDIR'
      ? { ok: false, reason: 'missing', detail: `${path} does not exist` }
      : { ok: false, reason: 'unreadable', detail: message };
  } finally {
    await file?.close();
  }
}

/** Owner of the secrets that Kubernetes mounts. */
const ROOT_UID = 0;

function accessFault(
  path: string,
  { uid, gid, mode }: Stats,
): Extract<ReadText, { ok: false }> | undefined {
  const user = process.getuid?.();
  if (user === undefined) return undefined;
  if (uid !== user && uid !== ROOT_UID) {
    const detail = `${path} belongs to user ${uid}, but this process runs as user ${user}; if the file is yours, run \`sudo chown ${user} ${path}\``;
    return { ok: false, reason: 'foreign_owner', detail };
  }
  // On many systems new files are writable by the user's private group, whose id equals the user's.
  const isWritable = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid);
  if (!isWritable) return undefined;
  const detail = `other users can change ${path}; run \`chmod go-w ${path}\``;
  return { ok: false, reason: 'not_private', detail };
}
