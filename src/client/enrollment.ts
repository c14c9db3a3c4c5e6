import { isDeepStrictEqual } from 'node:util';
import type { enrollDevice, rotateDevice } from '../api/devices.ts';
import type { LeaseAnswer } from '../api/leases.ts';
import {
  isEnrollmentCode,
  parseEnrollmentText,
  type EnrollmentText,
} from '../lease/enrollment-code.ts';
import { ServiceError } from '../base/errors.ts';
import { anchorText } from '../gate/anchor.ts';
import { ownMachineHash } from '../gate/machine-id.ts';
import { readLicense, type License } from '../gate/license.ts';
import type { LeaseOwner } from '../gate/machine-trust.ts';
import { readTextFile } from '../gate/text-file.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { isJsonObject } from '../lease/json.ts';
import type { TrustedKeys } from '../lease/keys.ts';
import { verifyRoots } from '../lease/root.ts';
import { leaseStatus } from '../lease/status.ts';
import type { HeldTrust, Trust } from '../lease/trust.ts';
import { checkLeaseUse } from '../lease/use.ts';
import { verifyLease } from '../lease/verify.ts';
import type { LicenseFiles } from '../gate/license-files.ts';
import { successionBody } from '../base/proof-claims.ts';
import type { Client } from './client.ts';
import { refuseInsecure } from './insecure-http.ts';
import { deviceKeyAt, newDeviceKey, readDeviceKey, type DeviceKey } from './device-key.ts';
import { makeDeviceProof } from './device-proof.ts';
import { keepFormerKey } from './former-key.ts';
import { judgeKeyset, type JudgedKeyset } from './keyset.ts';
import {
  checkLease,
  connectAsDevice,
  fetchKeyset,
  fetchLease,
  namedTrust,
  requireTrusted,
  ROOT_REASONS,
  unusable,
} from './lease-server.ts';
import { storeLicense } from './lease-store.ts';
import { INTERACTIVE_LOCK_WAIT_MS, withLock } from '../base/file-lock.ts';
import { replacePrivateFile } from '../base/private-file.ts';

/** This machine, and the server that issues its leases. */
export interface Device {
  readonly files: LicenseFiles;
  readonly url: string;
  /** Allows plain http to another host. */
  readonly insecure?: boolean | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  readonly warn: (text: string) => void;
  /** `machineHash` of this machine; `ownMachineHash` by default. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
}

export interface EnrollOptions {
  /** Keys that a person trusts: a keyset, one JWK, or one key in PEM. */
  readonly keyset?: string | undefined;
  /**
   * Called before the trust anchor is written, with its content: a running daemon accepts only an
   * anchor that a person announced, or that its own trust vouches for.
   */
  readonly announce?: (anchor: string) => Promise<void>;
}

/** Why this machine trusts the keys of the server from now on. */
export type TrustedBy = 'code' | 'pin' | 'named' | 'held' | 'first_contact';

export interface Enrolled {
  readonly device_id: string;
  readonly claims: LeaseClaims;
  /** False if the machine already held this lease and only received the keys. */
  readonly isNew: boolean;
  /** Why the lease lasts less than the plan allows; empty for a lease that is not new. */
  readonly limits: LeaseAnswer['limits'];
  readonly trust: Trust & { readonly basis: TrustedBy };
  /** Trust of this machine before the enrollment; undefined without trusted keys. */
  readonly formerTrust: HeldTrust | undefined;
}

/**
 * Enrolls this machine as a device and gets its first lease. The keys of the server are checked before
 * the code is used. After an interruption, another call with the same code completes the enrollment:
 * the device key is on disk before the server learns it, and the renewal id is derived from the key.
 *
 * @param code the one-time code, with or without the fingerprint of the issuer's root.
 * @param name what people call the machine.
 * @throws ServiceError of the server, `usage` for a truncated code, `invalid_data` for invalid files
 * or responses and for keys that are not trusted, `output_not_writable`, `conflict` while another
 * process renews.
 */
export async function enroll(
  device: Device,
  code: string,
  name: string,
  options: EnrollOptions = {},
): Promise<Enrolled> {
  const text = parsedCode(code);
  refuseInsecure(device.url, device.insecure);
  return withLock(device.files.lock, INTERACTIVE_LOCK_WAIT_MS, () =>
    enrollAlone(device, text, name, options),
  );
}

async function enrollAlone(
  device: Device,
  text: EnrollmentText,
  name: string,
  options: EnrollOptions,
): Promise<Enrolled> {
  const { files, clock } = device;
  const former = await readDeviceKey(files.key);
  const before = await readLicense(files, clock());
  const coded = text.rootFingerprint;
  const visitor = connectAsDevice(device, former ?? newDeviceKey());
  const keyset = await trustedKeyset(device, visitor, before, { ...options, coded });
  // The key is stored only now, so that an enrollment that fails earlier leaves no key behind.
  const key = former ?? (await deviceKeyAt(files.key));
  const server = connectAsDevice(device, key);
  const body = { code: text.code, jwk: jwkOf(key), name };
  const { deployment_id } = await server
    .call<typeof enrollDevice>('post', '/auth/license/devices', { body })
    .catch((error: unknown) => {
      throw withKeyPath(error, files.key);
    });
  const { trust } = keyset;
  const enrolled = { device_id: key.device_id, trust, formerTrust: before.trusted };
  const store = async ({ claims, lease }: { claims: LeaseClaims; lease: string }) => {
    const owner = { installationId: claims.deployment_id, issuer: claims.issuer };
    const root = anchorText({ ...owner, document: keyset.text });
    const isSame = trust.basis === 'held' && isDeepStrictEqual(owner, ownerOf(before));
    if (!isSame) await options.announce?.(root);
    await storeLicense(files, { lease, keyset: keyset.text, root }, before.leases[0]?.path);
  };
  const held = await heldLease(files.lease, trust.keys, key.device_id);
  const isGood = held !== undefined && leaseStatus(held.claims, clock()).state === 'valid';
  if (isGood && (await isUsableHere(device, held.claims, key))) {
    await store({ claims: held.claims, lease: held.text });
    return { ...enrolled, claims: held.claims, isNew: false, limits: [] };
  }
  const renewal_id = `${key.device_id}.${held?.claims.lease_id ?? 'first'}`;
  const answer = await fetchLease(server, {
    renewal_id,
    ...(held !== undefined && { lease: JSON.parse(held.text) as LeaseAnswer['lease'] }),
  });
  const claims = checkLease(answer.text, trust.keys, {
    deployment_id,
    renewal_id,
    device_thumbprint: key.device_id,
    issuer: trust.keyset?.issuer,
  });
  for (const { detail } of answer.warnings) device.warn(detail);
  await store({ claims, lease: answer.text });
  return { ...enrolled, claims, isNew: true, limits: answer.limits };
}

/** Whether the lease works with this key and on this machine. */
async function isUsableHere(
  { machineHash = ownMachineHash }: Device,
  claims: LeaseClaims,
  { device_id }: DeviceKey,
): Promise<boolean> {
  const machine_hash = claims.binding === 'machine' ? await machineHash() : undefined;
  return checkLeaseUse(claims, { device_thumbprints: [device_id], machine_hash }).ok;
}

function ownerOf({ owner, leases }: License): LeaseOwner | undefined {
  const claims = leases[0]?.claims;
  const held = claims && { installationId: claims.deployment_id, issuer: claims.issuer };
  return owner === undefined
    ? held
    : { installationId: owner.installationId, issuer: owner.issuer };
}

function parsedCode(text: string): EnrollmentText {
  const parsed = parseEnrollmentText(text);
  if (parsed !== undefined && isEnrollmentCode(parsed.code)) return parsed;
  const what =
    parsed === undefined
      ? 'the part after the dot is not the fingerprint of a root'
      : 'it must have seven groups of four letters and digits';
  throw new ServiceError('usage', `the code is truncated or mistyped: ${what}`, {
    reason: 'invalid_code',
    remedy: 'Copy the whole code that the issuer gave you, or ask the issuer for a new one.',
  });
}

/**
 * Fetches the keys of the server and decides whether this machine trusts them: by the fingerprint in
 * the code and the pinned one, by the keys that a person named, by those that it holds, or, without
 * any of these, at first contact.
 */
async function trustedKeyset(
  device: Device,
  server: Client,
  before: License,
  { coded, keyset: named }: Pick<EnrollOptions, 'keyset'> & { readonly coded: string | undefined },
): Promise<JudgedKeyset & { readonly trust: Enrolled['trust'] }> {
  const { files, clock } = device;
  const now = clock();
  const document = await fetchKeyset(server);
  const pin = coded ?? files.pin;
  checkPins(device, document, { code: coded, SERVICE_LICENSE_ROOT: files.pin }, now);
  const held = named === undefined ? before.trusted : namedTrust(named, pin, now);
  const judged = requireTrusted(document, { pin, held, now });
  const basis =
    coded !== undefined
      ? 'code'
      : pin !== undefined
        ? 'pin'
        : named !== undefined
          ? 'named'
          : judged.trust.by;
  return { ...judged, trust: { ...judged.trust, basis } };
}

/** @throws ServiceError `invalid_data` if the root of the server does not match every pin */
function checkPins(
  { url }: Device,
  document: unknown,
  pins: Readonly<Record<string, string | undefined>>,
  now: number,
): void {
  for (const [source, pin] of Object.entries(pins)) {
    const judged = pin === undefined ? undefined : judgeKeyset(document, { pin, now });
    if (judged === undefined || judged.ok || judged.reason === 'keyset_expired') continue;
    if (!ROOT_REASONS.has(judged.reason)) throw unusable('keyset', judged);
    const roots = isJsonObject(document) ? verifyRoots(document['roots']) : undefined;
    const served = roots?.ok === true ? `the root ${roots.root.lineage.at(-1)}` : 'no root';
    const by = source === 'code' ? 'the code' : source;
    throw new ServiceError(
      'invalid_data',
      `${by} requires the root ${pin}, but ${url} has ${served}`,
      {
        reason: judged.reason,
        remedy:
          'The code was not used, and no lease or key file was changed. Check the address, and ask the issuer for the fingerprint that `identity root show` prints. This may be a different server, or someone may be impersonating it.',
      },
    );
  }
}

/** Adds the path of the key, which the server does not know, to a conflict about the key. */
function withKeyPath(error: unknown, path: string): unknown {
  if (!(error instanceof ServiceError && error.code === 'conflict')) return error;
  const { code, message, reason } = error;
  return new ServiceError(code, message, {
    ...(reason !== undefined && { reason }),
    remedy: `Move ${path} away and enroll again; enrollment creates a new key.`,
    cause: error,
  });
}

export interface Rotated {
  readonly device_id: string;
  /** Id of the former key, which stays valid until the new one is first used. */
  readonly replaces: string;
}

/**
 * Gives this device a new key. The key is on disk before the server learns it, and replaces the former
 * one after the server accepted it; another call after an interruption continues with the same key.
 *
 * @throws ServiceError as `enroll`, and `file_not_found` for a machine that is not enrolled.
 */
export async function rotateKey(device: Device): Promise<Rotated> {
  return withLock(device.files.lock, INTERACTIVE_LOCK_WAIT_MS, () => rotateAlone(device));
}

async function rotateAlone(device: Device): Promise<Rotated> {
  const { files, url, clock } = device;
  const key = await readDeviceKey(files.key);
  if (key === undefined) {
    throw new ServiceError(
      'file_not_found',
      `this machine is not enrolled: ${files.key} does not exist`,
      {
        remedy: 'Enroll it with `service-local license enroll`.',
      },
    );
  }
  const next = await deviceKeyAt(files.nextKey);
  const path = '/auth/license/devices/rotate';
  const sent = { method: 'POST', url: `${url}${path}`, body: successionBody(key.device_id) };
  await connectAsDevice(device, key).call<typeof rotateDevice>('post', path, {
    body: { jwk: jwkOf(next), proof: makeDeviceProof(next, sent, clock()) },
  });
  await keepFormerKey(files, key, clock());
  await replacePrivateFile(files.nextKey, files.key);
  return { device_id: next.device_id, replaces: key.device_id };
}

function jwkOf({ x }: DeviceKey) {
  return { kty: 'OKP', crv: 'Ed25519', x } as const;
}

/** Returns the lease in the file if it verifies and belongs to this device. */
async function heldLease(
  path: string,
  keys: TrustedKeys,
  deviceId: string,
): Promise<{ readonly claims: LeaseClaims; readonly text: string } | undefined> {
  const { read } = await readTextFile(path);
  if (!read.ok) return undefined;
  const result = verifyLease(read.text, keys);
  if (!result.ok || result.claims.device_thumbprint !== deviceId) return undefined;
  return { claims: result.claims, text: read.text };
}
