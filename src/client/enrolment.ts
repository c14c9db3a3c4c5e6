import { readFile } from 'node:fs/promises';
import type { createLease, LeaseAnswer } from '../api/leases.ts';
import type { enrolDevice, rotateDevice } from '../api/devices.ts';
import type { getKeyset } from '../api/keys.ts';
import { isSystemError, ServiceError } from '../errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { importKeyset, type TrustedKeys } from '../lease/keys.ts';
import { leaseStatus } from '../lease/status.ts';
import { verifyLease } from '../lease/verify.ts';
import type { LicenseFiles } from '../license-files.ts';
import { successionBody } from '../proof-claims.ts';
import { createClient, type Client } from './client.ts';
import { deviceKeyAt, readDeviceKey, type DeviceKey } from './device-key.ts';
import { makeDeviceProof } from './device-proof.ts';
import { replacePrivateFile, writePrivateFile } from './private-file.ts';

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
  /** Where the lease lasts less than was due; of one that is not new, nothing is known of that. */
  readonly limits: LeaseAnswer['limits'];
}

/**
 * Makes this machine a device and gets its first lease. Whatever ends it half-way, it goes on where
 * it stopped when it is called again with the same code: the key is on disk before the server knows
 * it, and the renewal has an id that follows from the key.
 *
 * @throws ServiceError of the server, `invalid_data` for files or answers that are not as they must
 * be, `output_not_writable`.
 */
export async function enrol(device: Device, code: string, name: string): Promise<Enrolled> {
  const { files, clock } = device;
  const key = await deviceKeyAt(files.key);
  const server = connect(device, key);
  const body = { code, jwk: jwkOf(key), name };
  const { deployment_id } = await server
    .call<typeof enrolDevice>('post', '/auth/license/devices', { body })
    .catch((error: unknown) => {
      throw withPlaceOfKey(error, files.key);
    });
  const keyset = await server.call<typeof getKeyset>('get', '/.well-known/license-keys.json', {});
  const keys = trusted(keyset);
  const held = await heldLease(files.lease, keys, key.device_id);
  if (held !== undefined && leaseStatus(held.claims, clock()).state === 'valid') {
    await writePrivateFile(files.keyset, JSON.stringify(keyset));
    return { device_id: key.device_id, claims: held.claims, limits: [] };
  }
  const renewal_id = `${key.device_id}.${held?.claims.lease_id ?? 'first'}`;
  const answer = await server.call<typeof createLease>('post', '/auth/license/leases', {
    body: { renewal_id, ...(held !== undefined && { lease: held.lease }) },
  });
  // Of an answer that has none, `null`, which is refused as any other text would be.
  const text = JSON.stringify((answer as Partial<LeaseAnswer>).lease ?? null);
  const claims = verified(text, keys, {
    deployment_id,
    renewal_id,
    device_thumbprint: key.device_id,
  });
  for (const { detail } of answer.warnings ?? []) device.warn(detail);
  await writePrivateFile(files.keyset, JSON.stringify(keyset));
  await writePrivateFile(files.lease, text);
  return { device_id: key.device_id, claims, limits: answer.limits ?? [] };
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
  await connect(device, key).call<typeof rotateDevice>('post', path, {
    body: { jwk: jwkOf(next), proof: makeDeviceProof(next, sent, clock()) },
  });
  await replacePrivateFile(files.nextKey, files.key);
  return { device_id: next.device_id, replaces: key.device_id };
}

/** Signs each request with the key. */
function connect({ url, clock, warn }: Device, key: DeviceKey): Client {
  return createClient({
    url,
    authorize: (request, nonce) => `DeviceProof ${makeDeviceProof(key, request, clock(), nonce)}`,
    warn,
  });
}

function jwkOf({ x }: DeviceKey) {
  return { kty: 'OKP', crv: 'Ed25519', x } as const;
}

/** @throws ServiceError `invalid_data` */
function trusted(keyset: unknown): TrustedKeys {
  const imported = importKeyset(keyset);
  if (imported.ok) return imported.keys;
  throw unusable('keyset', imported);
}

/** @throws ServiceError `invalid_data` for a lease that is not the one asked for. */
function verified(text: string, keys: TrustedKeys, asked: Asked): LeaseClaims {
  const result = verifyLease(text, keys);
  if (!result.ok) throw unusable('lease', result);
  const { claims } = result;
  for (const name of Object.keys(asked) as (keyof Asked)[]) {
    if (claims[name] === asked[name]) continue;
    const detail = `its ${name} is ${claims[name]}, not ${asked[name]}`;
    throw unusable('lease', { reason: 'other_lease', detail });
  }
  return claims;
}

type Asked = Required<Pick<LeaseClaims, 'deployment_id' | 'renewal_id' | 'device_thumbprint'>>;

function unusable(
  what: string,
  { reason, detail }: { readonly reason: string; readonly detail: string },
): ServiceError {
  return new ServiceError(
    'invalid_data',
    `the ${what} that the server gave is unusable: ${detail}`,
    {
      reason,
      remedy: 'The lease file was not changed; run it again with the same code.',
    },
  );
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
