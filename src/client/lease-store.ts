import { constants } from 'node:fs';
import { copyFile, link, lstat, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeAbandoned } from '../base/atomic-file.ts';
import { isSystemError } from '../base/errors.ts';
import { backupOf } from '../gate/license.ts';
import type { LicenseFiles } from '../gate/license-files.ts';
import { checkPlace, writing, writePrivateFile } from './private-file.ts';

/** Content of the license files of a machine. */
export interface LicenseText {
  readonly lease: string;
  readonly keyset: string;
  /** The trust anchor; undefined leaves that file as it is. */
  readonly root?: string | undefined;
}

/**
 * Replaces the lease, the keys that verify it and the trust anchor. At every instant, and after a
 * kill or a power cut at any of them, the files hold a lease and the keys that verify it: the new
 * lease is in one of its two places before the keys change, and the former one stays in the other
 * until they have. The anchor changes after the keyset, which it would otherwise refuse as older.
 *
 * @param heldAt the file that holds the lease that counts now.
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

/** Longer than the write of a lease takes. */
const LEASE_WRITE_MS = 60_000;

/**
 * Puts a lease that was verified into its place, and first a second copy beside it. At every instant
 * each of the two files is what it was before or all of the new, and once this has returned both
 * outlast a power cut.
 *
 * @param path of the lease; see `licenseFiles`.
 * @throws ServiceError `output_not_writable`; `invalid_data` with a reason where something else is
 * at one of the two places (`symlink`, `not_a_file`, `foreign_owner`), or where others may write
 * (`not_private`): then neither file was touched.
 */
export async function storeLease(path: string, text: string): Promise<void> {
  await checkPlace(path);
  await checkPlace(backupOf(path));
  await writePrivateFile(backupOf(path), text);
  await writePrivateFile(path, text);
  // Not before: what a killed process left there may have been the only lease that was whole.
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

/** How many files are kept, the newest. */
const MOST_QUARANTINED = 3;

/**
 * Keeps a file that is not good under a second name, for who wants to know what happened to it,
 * before another is put into its place. It is at its own place all the while. Of what is kept
 * already, there will be no second copy.
 *
 * @param now milliseconds since the Unix epoch.
 * @returns the second name; undefined when there is no such file.
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

/** What is kept, the oldest first. */
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
      // Not every file system knows a second name for a file.
      if (!isSystemError(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS')) throw error;
      await copyFile(path, name, constants.COPYFILE_EXCL);
    });
    return name;
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    return linkAt(path, time + 1);
  }
}
