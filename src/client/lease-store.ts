import { constants } from 'node:fs';
import { copyFile, link, lstat, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeAbandoned } from '../base/atomic-file.ts';
import { isSystemError } from '../base/system-errors.ts';
import { backupOf } from '../gate/license.ts';
import type { LicenseFiles } from '../gate/license-files.ts';
import { checkPlace, writing, writePrivateFile } from '../base/private-file.ts';

/** Content of the license files of a machine. */
export interface LicenseText {
  readonly lease: string;
  readonly keyset: string;
  /** The trust anchor; undefined leaves that file unchanged. */
  readonly root?: string | undefined;
}

/**
 * Replaces the lease, the keys that verify it and the trust anchor. At every instant, even after a
 * kill or a power failure, the files hold a lease and the keys that verify it: the new lease is
 * written to one of its two files before the keys change, and the former lease stays in the other
 * file until they have changed. The anchor is written last, because it would refuse an older keyset.
 *
 * @param heldAt the file that holds the lease in force.
 * @throws ServiceError as `storeLease`
 */
export async function storeLicense(
  files: Pick<LicenseFiles, 'lease' | 'keyset' | 'root'>,
  { lease, keyset, root }: LicenseText,
  heldAt?: string,
): Promise<void> {
  const backup = backupOf(files.lease);
  for (const path of [files.lease, backup, files.keyset, files.root]) await checkPlace(path);
  const [first, last] = heldAt === backup ? [files.lease, backup] : [backup, files.lease];
  await writePrivateFile(first, lease);
  await writeChanged(files.keyset, keyset);
  if (root !== undefined) await writeChanged(files.root, root);
  await writePrivateFile(last, lease);
  await removeAbandoned(dirname(files.lease), { unknownAfterMs: LEASE_WRITE_MS });
}

/** Keys rarely change, so an equal file is not written again. */
async function writeChanged(path: string, text: string): Promise<void> {
  const before = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isSystemError(error)) return undefined;
    throw error;
  });
  if (before !== text) await writePrivateFile(path, text);
}

/** Longer than writing a lease takes. */
const LEASE_WRITE_MS = 60_000;

/**
 * Writes a verified lease to its backup file and then to `path`. At every instant each file holds
 * either its former content or the whole new lease, and after this returns both survive a power
 * failure.
 *
 * @throws ServiceError `output_not_writable`; `invalid_data`, with neither file changed, if one of
 * the paths is not a file of this user (`symlink`, `not_a_file`, `foreign_owner`) or other users can
 * write to the directory (`not_private`).
 */
export async function storeLease(path: string, text: string): Promise<void> {
  await checkPlace(path);
  await checkPlace(backupOf(path));
  await writePrivateFile(backupOf(path), text);
  await writePrivateFile(path, text);
  // Only now, because a temporary file of a killed process may have been the only complete lease.
  await removeAbandoned(dirname(path), { unknownAfterMs: LEASE_WRITE_MS });
}

/**
 * Writes the keyset file or the trust anchor alone.
 * @throws ServiceError as `storeLease`
 */
export async function storeKeyset(path: string, text: string): Promise<void> {
  await checkPlace(path);
  await writePrivateFile(path, text);
}

/** Older files are removed. */
const MOST_QUARANTINED = 3;

/**
 * Gives a bad file a second name before it is replaced, so that it can be examined later. The file
 * also stays at its path. A file that already has a second name gets no other.
 *
 * @param now milliseconds since the Unix epoch.
 * @returns the second name; undefined if there is no such file.
 * @throws ServiceError as `storeLease`
 */
export async function quarantine(path: string, now: number): Promise<string | undefined> {
  const bad = await checkPlace(path);
  if (bad === undefined) return undefined;
  return writing(path, async () => {
    const before = await quarantined(path);
    for (const kept of before) if ((await lstat(kept)).ino === bad.ino) return kept;
    const kept = await linkAt(path, now);
    const outdated = before.toReversed().slice(MOST_QUARANTINED - 1);
    for (const file of outdated) await rm(file, { force: true });
    return kept;
  });
}

/** Returns the quarantined files, oldest first. */
async function quarantined(path: string): Promise<readonly string[]> {
  const directory = dirname(path);
  const names = await readdir(directory);
  const kept = names.filter((name) => name.startsWith(`${basename(path)}.quarantined-`));
  return kept.sort().map((name) => join(directory, name));
}

async function linkAt(path: string, time: number): Promise<string> {
  const name = `${path}.quarantined-${new Date(time).toISOString().replaceAll(/[:.-]/g, '')}`;
  try {
    await link(path, name).catch(async (error: unknown) => {
      // Some file systems do not support hard links.
      if (!isSystemError(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS')) throw error;
      await copyFile(path, name, constants.COPYFILE_EXCL);
    });
    return name;
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    return linkAt(path, time + 1);
  }
}
