import { readFile } from 'node:fs/promises';
import type { enrolDevice, rotateDevice } from '../api/devices.ts';
import type { LeaseAnswer } from '../api/leases.ts';
import { isSystemError, ServiceError } from '../errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { TrustedKeys } from '../lease/keys.ts';
import { leaseStatus } from '../lease/status.ts';
import { verifyLease } from '../lease/verify.ts';
import type { LicenseFiles } from '../license-files.ts';
import { successionBody } from '../proof-claims.ts';
import { deviceKeyAt, readDeviceKey, type DeviceKey } from './device-key.ts';
import { makeDeviceProof } from './device-proof.ts';
import { checkLease, connectAsDevice, fetchKeyset, fetchLease } from './lease-server.ts';
import { storeKeyset, storeLease } from './lease-store.ts';
import { LOCK_PATIENCE_MS, withLock } from './lock.ts';
import { replacePrivateFile } from './private-file.ts';

/** This machine, and the server that gives it leases. */
export interface Device {
  readonly files: LicenseFiles;
  /** Origin of the server. */
  readonly url: string;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  /** Told what the person should know. */
  readonly warn: (text: string) => void;
}

export interface Enrolled {
  readonly device_id: string;
  readonly claims: LeaseClaims;
  /** False when it held that lease already, and all that came is the keys. */
  readonly isNew: boolean;
  /** Where the lease lasts less than was due; of one that is not new, nothing is known of that. */
  readonly limits: LeaseAnswer['limits'];
}

/**
 * Makes this machine a device and gets its first lease. Whatever ends it half-way, it goes on where
 * it stopped when it is called again with the same code: the key is on disk before the server knows
 * it, and the renewal has an id that follows from the key.
 *
 * @throws ServiceError of the server, `invalid_data` for files or answers that are not as they must
 * be, `output_not_writable`, `conflict` while another process renews.
 */
export async function enrol(device: Device, code: string, name: string): Promise<Enrolled> {
  return withLock(device.files.lock, LOCK_PATIENCE_MS, () => enrolAlone(device, code, name));
}

async function enrolAlone(device: Device, code: string, name: string): Promise<Enrolled> {
  const { files, clock } = device;
  const key = await deviceKeyAt(files.key);
  const server = connectAsDevice(device, key);
  const body = { code, jwk: jwkOf(key), name };
  const { deployment_id } = await server
    .call<typeof enrolDevice>('post', '/auth/license/devices', { body })
    .catch((error: unknown) => {
      throw withPlaceOfKey(error, files.key);
    });
  const keyset = await fetchKeyset(server);
  const held = await heldLease(files.lease, keyset.keys, key.device_id);
  if (held !== undefined && leaseStatus(held.claims, clock()).state === 'valid') {
    await storeKeyset(files.keyset, keyset.text);
    return { device_id: key.device_id, claims: held.claims, isNew: false, limits: [] };
  }
  const renewal_id = `${key.device_id}.${held?.claims.lease_id ?? 'first'}`;
  const { text, limits, warnings } = await fetchLease(server, {
    renewal_id,
    ...(held !== undefined && { lease: held.lease }),
  });
  const asked = { deployment_id, renewal_id, device_thumbprint: key.device_id };
  const claims = checkLease(text, keyset.keys, asked);
  for (const { detail } of warnings) device.warn(detail);
  await storeKeyset(files.keyset, keyset.text);
  await storeLease(files.lease, text);
  return { device_id: key.device_id, claims, isNew: true, limits };
}

/** The server, which refuses a key as a device's, does not know where it is. */
function withPlaceOfKey(error: unknown, path: string): unknown {
  if (!(error instanceof ServiceError && error.code === 'conflict')) return error;
  const { code, message, reason } = error;
  return new ServiceError(code, message, {
    ...(reason !== undefined && { reason }),
    remedy: `Move ${path} away, and enrol again: that makes a new key.`,
    cause: error,
  });
}

export interface Rotated {
  readonly device_id: string;
  /** The key of before, good until the new one is first used. */
  readonly replaces: string;
}

/**
 * Gives this device a new key. The new one is on disk before the server knows it, and takes the place
 * of the old one when the server does: called again after it was ended half-way, it goes on with the
 * same key.
 *
 * @throws ServiceError as `enrol`, and `file_not_found` for a machine that is no device.
 */
export async function rotateKey(device: Device): Promise<Rotated> {
  return withLock(device.files.lock, LOCK_PATIENCE_MS, () => rotateAlone(device));
}

async function rotateAlone(device: Device): Promise<Rotated> {
  const { files, url, clock } = device;
  const key = await readDeviceKey(files.key);
  if (key === undefined) {
    throw new ServiceError('file_not_found', `${files.key} is not there: this is no device`, {
      remedy: 'Enrol it with `service-local license enroll`.',
    });
  }
  const next = await deviceKeyAt(files.nextKey);
  const path = '/auth/license/devices/rotate';
  const sent = { method: 'POST', url: `${url}${path}`, body: successionBody(key.device_id) };
  await connectAsDevice(device, key).call<typeof rotateDevice>('post', path, {
    body: { jwk: jwkOf(next), proof: makeDeviceProof(next, sent, clock()) },
  });
  await replacePrivateFile(files.nextKey, files.key);
  return { device_id: next.device_id, replaces: key.device_id };
}

function jwkOf({ x }: DeviceKey) {
  return { kty: 'OKP', crv: 'Ed25519', x } as const;
}

/** The lease in the file, if it is one for this device: what cannot be used is as good as none. */
async function heldLease(
  path: string,
  keys: TrustedKeys,
  deviceId: string,
): Promise<{ readonly claims: LeaseClaims; readonly lease: LeaseAnswer['lease'] } | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
  const result = verifyLease(text, keys);
  if (!result.ok || result.claims.device_thumbprint !== deviceId) return undefined;
  return { claims: result.claims, lease: JSON.parse(text) as LeaseAnswer['lease'] };
}
