import { constants } from 'node:fs';
import { copyFile, link, lstat, readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeAbandoned } from '../atomic-file.ts';
import { isSystemError } from '../errors.ts';
import { backupOf } from '../gate/license.ts';
import { checkPlace, writing, writePrivateFile } from './private-file.ts';

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
 * Puts a keyset into its place: before the lease that needs it.
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
