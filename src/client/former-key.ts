import { rm } from 'node:fs/promises';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { readLicense } from '../gate/license.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { LicenseFiles } from '../gate/license-files.ts';
import { readDeviceKey, type DeviceKey } from './device-key.ts';
import { writePrivateFile } from '../base/private-file.ts';

/**
 * Keeps the key that is about to be replaced while the lease of this machine is bound to it, so that
 * the lease works until the next renewal. Of several rotations in a row it keeps the first key,
 * because the lease names that one.
 *
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `output_not_writable`
 */
export async function keepFormerKey(
  files: LicenseFiles,
  { device_id, privateKey }: DeviceKey,
  now: number,
): Promise<void> {
  const [lease] = (await readLicense(files, now)).leases;
  // A lease that cannot be read now may be readable later.
  if (lease !== undefined && lease.claims.binding !== 'device') return;
  const kept = await readFormerKey(files.formerKey);
  const isNeeded = kept !== undefined && kept === lease?.claims.device_thumbprint;
  if (isNeeded && kept !== device_id) return;
  await writePrivateFile(files.formerKey, privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

/** Removes the former key once the lease of this machine is bound to another one. */
export async function dropFormerKey(
  { formerKey }: Pick<LicenseFiles, 'formerKey'>,
  { device_thumbprint }: Pick<LeaseClaims, 'device_thumbprint'>,
): Promise<void> {
  const kept = await readFormerKey(formerKey);
  if (kept === undefined || kept === device_thumbprint) return;
  try {
    await rm(formerKey, { force: true });
  } catch (error) {
    // The server refuses this key from now on, so a renewal need not fail because of it.
    if (!isSystemError(error)) throw error;
  }
}

/** Thumbprint of the former key; undefined if there is no usable one. */
async function readFormerKey(path: string): Promise<string | undefined> {
  try {
    return (await readDeviceKey(path))?.device_id;
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}
