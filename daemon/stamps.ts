import { stat } from 'node:fs/promises';
import { isSystemError } from '../src/base/system-errors.ts';
import { backupOf } from '../src/gate/license.ts';
import type { LicenseFiles } from '../src/gate/license-files.ts';

/** Inode, size and modification time of each license file, for detecting changes. */
export interface Stamps {
  readonly lease: string;
  readonly backup: string;
  readonly keyset: string;
  readonly root: string;
  readonly key: string;
  readonly state: string;
}

/** Stamp of a file that does not exist. */
export const MISSING = 'missing';

export async function readStamps({
  lease,
  keyset,
  root,
  key,
  state,
}: LicenseFiles): Promise<Stamps> {
  return {
    lease: await readStamp(lease),
    backup: await readStamp(backupOf(lease)),
    keyset: await readStamp(keyset),
    root: await readStamp(root),
    key: await readStamp(key),
    state: await readStamp(state),
  };
}

async function readStamp(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return MISSING;
    if (isSystemError(error)) return String(error.code);
    throw error;
  }
}
