import { v7 as uuidv7 } from 'uuid';
import { deviceKeyAt, readDeviceKey } from '../src/client/device-key.ts';
import { makeOfflineRequest } from '../src/client/device-proof.ts';
import { dropFormerKey } from '../src/client/former-key.ts';
import { judgeKeysetText } from '../src/client/keyset.ts';
import { ROOT_REASONS } from '../src/client/lease-server.ts';
import { storeLease, storeLicense } from '../src/client/lease-store.ts';
import { INTERACTIVE_LOCK_WAIT_MS, withLock } from '../src/base/file-lock.ts';
import { ServiceError } from '../src/base/errors.ts';
import { readAnchor } from '../src/gate/anchor.ts';
import {
  backupOf,
  byWorth,
  readLicense,
  statusOf,
  type HeldLease,
  type License,
} from '../src/gate/license.ts';
import { leasesHere } from '../src/gate/lease-use.ts';
import { ownMachineHash } from '../src/gate/machine-id.ts';
import { readTextFile } from '../src/gate/text-file.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import { isJsonObject } from '../src/lease/json.ts';
import type { RunningTime } from '../src/lease/known-time.ts';
import { LEASE_REASONS, type LeaseReason } from '../src/lease/reasons.ts';
import type { Refused } from '../src/lease/refusal.ts';
import type { HeldTrust } from '../src/lease/trust.ts';
import { verifyLease } from '../src/lease/verify.ts';
import { pinRemedy, type LicenseFiles } from '../src/gate/license-files.ts';
import { acceptedOf } from './accepted.ts';
import { announceAnchor } from './announcement.ts';
import { readState, writeState } from './daemon-state.ts';

export interface OfflineRequest {
  /** Value for `offline_request` when the administrator issues the lease. */
  readonly jwt: string;
  readonly device_id: string;
  readonly renewal_id: string;
  readonly lease_id: string | null;
}

/**
 * Creates a lease request for a machine without a network, and a device key if it has none. Repeated
 * calls request the same renewal until its lease is imported.
 *
 * @param name display name of the machine.
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `conflict` while another process changes the license files; `invalid_data` for
 * a key that cannot be used, `output_not_writable`.
 */
export async function exportRequest(
  files: LicenseFiles,
  name: string,
  now: number,
  machineHash = ownMachineHash,
): Promise<OfflineRequest> {
  return withLock(files.lock, INTERACTIVE_LOCK_WAIT_MS, async () => {
    const key = await deviceKeyAt(files.key);
    const {
      leases: [held],
    } = await readLicense(files, now);
    const lease_id = held?.claims.lease_id ?? null;
    const state = await readState(files.state);
    const before = state.pending?.lease_id === lease_id ? state.pending : undefined;
    const pending = before ?? { renewal_id: uuidv7(), lease_id };
    if (before === undefined) await writeState(files.state, { ...state, pending });
    const { renewal_id, without_lease } = pending;
    const isPresented = held && !without_lease && isFor(key.device_id, held.claims);
    const lease = isPresented ? (JSON.parse(held.text) as unknown) : undefined;
    const machine_hash = await machineHash();
    const request = { name, renewal_id, ...(isPresented && { lease }), machine_hash };
    const jwt = makeOfflineRequest(key, request, now);
    return { jwt, device_id: key.device_id, renewal_id, lease_id: isPresented ? lease_id : null };
  });
}

/** An imported lease, and the keys to verify it. */
export interface ImportedFiles {
  readonly lease: string;
  /** Keys in the same file; a forger of the lease would have forged them too. */
  readonly enclosed?: string | undefined;
  readonly named?: string | undefined;
}

/** Splits the document of lease and keyset that `identity leases issue --request` writes. */
export function splitLeaseFile(
  text: string,
): { readonly lease: string; readonly enclosed: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { lease, keyset } = value;
  if (lease === undefined || keyset === undefined) return undefined;
  return { lease: JSON.stringify(lease), enclosed: JSON.stringify(keyset) };
}

export interface VerifiedImport {
  readonly claims: LeaseClaims;
  /** Source of the keys that verified the lease. */
  readonly by: 'named' | 'machine' | 'enclosed';
  readonly trust: HeldTrust;
  /** Content for the keyset file; undefined if the keys of the machine stay. */
  readonly text: string | undefined;
}

/**
 * Verifies a lease as `importLease` does: by the keys that the user named; otherwise by the keys in the
 * same file, if this machine trusts them or trusts no keys yet; otherwise by the keys of this machine.
 *
 * @param pin fingerprint of the pinned root.
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `invalid_data` with a `LeaseReason`
 */
export function verifyImport(
  { lease, enclosed, named }: ImportedFiles,
  { trusted, keyset }: Pick<License, 'trusted' | 'keyset'>,
  { pin, now }: { readonly pin: string | undefined; readonly now: number },
): VerifiedImport {
  const given = named ?? enclosed;
  const held = named === undefined ? trusted : undefined;
  const judged = given === undefined ? undefined : judgeKeysetText(given, { pin, held, now });
  if (judged?.ok === false && held === undefined) {
    const isPinned = pin !== undefined && ROOT_REASONS.has(judged.reason);
    throw refusalError(
      'the keyset',
      judged,
      isPinned ? `${NOTHING_CHANGED} ${pinRemedy(pin)}` : undefined,
    );
  }
  const isTaken = judged?.ok === true;
  const trust = isTaken ? judged.trust : trusted;
  if (trust === undefined) {
    const missing = keyset.ok
      ? { reason: 'unknown_key' as const, detail: 'it does not exist' }
      : keyset;
    throw refusalError('the keyset of this machine', missing, NAME_KEYS);
  }
  const result = verifyLease(lease, trust.keys);
  if (!result.ok) throw refusalError('the lease', { ...result, detail: describeRefusal(result) });
  const by = named !== undefined ? 'named' : trusted === undefined ? 'enclosed' : 'machine';
  return { claims: result.claims, by, trust, text: isTaken ? judged.text : undefined };
}

export interface Imported extends Pick<VerifiedImport, 'claims' | 'by'> {
  /** Ids of the keys that verify leases from now on. */
  readonly key_ids: readonly string[];
  /** False if the lease file already held this lease. */
  readonly isNew: boolean;
}

export interface ImportOptions {
  /** `machineHash` of this machine; `ownMachineHash` by default. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
  /** Accepts a lease of another installation or issuer. */
  readonly replace?: boolean;
}

/**
 * Stores a lease from a file, and its keys if they are trusted. The lease must verify, be for this
 * machine, and be no worse than a held lease that works; otherwise no file changes. A pending renewal
 * with another id stays pending, so that the server can answer it after the imported lease has ended.
 *
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `invalid_data` with a reason; `license_invalid` for an expired lease; `conflict`
 * with a reason if the lease conflicts with the held one, or while another process changes the license
 * files; `output_not_writable`.
 */
export async function importLease(
  files: LicenseFiles,
  imported: ImportedFiles,
  now: number,
  { replace = false, machineHash }: ImportOptions = {},
): Promise<Imported> {
  return withLock(files.lock, INTERACTIVE_LOCK_WAIT_MS, async () => {
    const license = await readLicense(files, now);
    const { pin } = files;
    // Keys in the file count only if held keys or a pin can vouch for them, or on a new machine.
    const mayVouch = license.trusted !== undefined || pin !== undefined || isFirst(license);
    const parts = mayVouch ? imported : { ...imported, enclosed: undefined };
    const { claims, by, trust, text } = verifyImport(parts, license, { pin, now });
    const key = await readDeviceKey(files.key);
    if (!isFor(key?.device_id, claims)) throw otherDevice(claims, key?.device_id);
    const lease = { path: files.lease, text: imported.lease, claims };
    const [unusable] = (await leasesHere(files, [lease], { machineHash })).refused;
    if (unusable !== undefined) throw refusalError('the lease', unusable, OTHER_MACHINE);
    if (statusOf(lease, now, license.running).state === 'expired') throw ended(claims);
    const [held] = license.leases;
    if (!replace) {
      refuseOtherOwner(license.owner, claims);
      refuseOtherInstallation(held, lease, now, license.running);
    }
    const isOwn = held?.claims.deployment_id === claims.deployment_id;
    if (held !== undefined && isOwn && byWorth(now, license.running)(lease, held) > 0) {
      throw worse(held, lease);
    }
    const isNew = held?.path !== files.lease || held.claims.lease_id !== claims.lease_id;
    const document = text ?? (await ownDocument(files, trust, now));
    const accepted = document === undefined ? undefined : acceptedOf(claims, trust, document);
    if (accepted?.anchor !== undefined && (by !== 'machine' || replace)) {
      await announceAnchor(files.state, accepted.anchor);
    }
    if (accepted !== undefined) {
      const { document: keyset, anchor: root } = accepted;
      await storeLicense(files, { lease: lease.text, keyset, root }, held?.path);
    } else if (isNew) await storeLease(files.lease, lease.text);
    await dropFormerKey(files, claims);
    const state = await readState(files.state);
    const pending = state.pending?.renewal_id === claims.renewal_id ? null : state.pending;
    await writeState(files.state, {
      ...state,
      pending,
      imported_lease_id: claims.lease_id,
      last_error: null,
      denied_since: null,
      failures_in_row: 0,
    });
    return { claims, by, key_ids: [...trust.keys.keys()], isNew };
  });
}

/** Returns the keyset document of this machine for its trust anchor; undefined without a usable one. */
async function ownDocument(
  { keyset, root, pin }: LicenseFiles,
  held: HeldTrust,
  now: number,
): Promise<string | undefined> {
  const { read } = await readTextFile(keyset);
  const judged = read.ok ? judgeKeysetText(read.text, { pin, held, now }) : read;
  if (judged.ok) return judged.text;
  const anchor = await readAnchor(root);
  return anchor.kind === 'held' ? anchor.document : undefined;
}

/** Whether this machine has neither keys nor any copy of a lease. */
function isFirst({ keyset, refused: files, leases }: License): boolean {
  const isNone = files.every(({ reason }) => reason === 'missing') && leases.length === 0;
  return isNone && !keyset.ok && keyset.reason === 'unknown_key';
}

/** A lease without a device is for any machine. */
function isFor(device_id: string | undefined, { device_thumbprint }: LeaseClaims): boolean {
  return device_thumbprint === undefined || device_thumbprint === device_id;
}

const NOTHING_CHANGED = 'Nothing was changed.';

const NAME_KEYS =
  'Name the current keys of the issuer with --keyset FILE: the document at /.well-known/license-keys.json of its server, or the lease file itself if it contains keys and you trust its sender.';

function refusalError(
  what: string,
  { reason, detail }: Omit<Refused, 'ok'>,
  remedy = reason === 'unknown_key' ? NAME_KEYS : 'Ask the issuer to send the original file again.',
): ServiceError {
  return new ServiceError('invalid_data', `${what} is refused: ${detail}`, { reason, remedy });
}

/** Explains a refusal: the sentence of its reason, and the detail in parentheses. */
export function describeRefusal({ reason, detail }: Omit<Refused, 'ok'>): string {
  const sentence = LEASE_REASONS[reason].replace(/\.$/, '');
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)} (${detail})`;
}

const OTHER_MACHINE = `${NOTHING_CHANGED} Request a lease for this machine with \`service-local license export-request\`.`;

function otherDevice(
  { device_thumbprint }: LeaseClaims,
  device_id: string | undefined,
): ServiceError {
  const own = device_id === undefined ? 'has no device key' : `is the device ${device_id}`;
  return new ServiceError(
    'invalid_data',
    `the lease is for the device ${device_thumbprint}, but this machine ${own}`,
    {
      reason: 'other_device',
      remedy: OTHER_MACHINE,
    },
  );
}

function ended({ grace_ends_at }: LeaseClaims): ServiceError {
  return new ServiceError('license_invalid', `the lease ended on ${grace_ends_at}`, {
    reason: 'expired',
    remedy: `${NOTHING_CHANGED} Request a new lease with \`service-local license export-request\`; if the lease is new, correct the clock of this machine.`,
  });
}

/** @throws ServiceError `conflict` for a lease of another installation or issuer than the anchor names */
export function refuseOtherOwner(owner: License['owner'], claims: LeaseClaims): void {
  if (owner === undefined) return;
  const { installationId, issuer } = owner;
  if (claims.issuer !== issuer) {
    throw otherOwner('other_issuer', `the lease is from the issuer ${claims.issuer}`, issuer);
  }
  if (claims.deployment_id !== installationId) {
    const what = `the lease is for the installation ${claims.deployment_id}`;
    throw otherOwner('other_installation', what, installationId);
  }
}

function otherOwner(reason: LeaseReason, what: string, expected: string): ServiceError {
  return new ServiceError('conflict', `${what}, but this machine accepts leases of ${expected}`, {
    reason,
    remedy: `${NOTHING_CHANGED} To move this machine to it, enroll it again with \`service-local license enroll\` and a new code; or, without a network, run \`service-local license import FILE --replace\`.`,
  });
}

/** @throws ServiceError `conflict` for a lease of another installation than one that still works */
export function refuseOtherInstallation(
  held: HeldLease | undefined,
  { claims, path }: HeldLease,
  now: number,
  running: RunningTime | undefined,
): void {
  if (held === undefined || claims.deployment_id === held.claims.deployment_id) return;
  if (statusOf(held, now, running).state === 'expired') return;
  throw new ServiceError(
    'conflict',
    `the lease is for the installation ${claims.deployment_id}, but this machine holds one for ${held.claims.deployment_id}`,
    {
      reason: 'other_deployment',
      remedy: `${NOTHING_CHANGED} If this is intended, run \`service-local daemon stop\`, move ${path} and ${backupOf(path)} away, and try again.`,
    },
  );
}

function worse({ claims: held }: HeldLease, { claims }: HeldLease): ServiceError {
  return new ServiceError(
    'conflict',
    `the lease was issued at ${claims.issued_at} and works until ${claims.grace_ends_at}; this machine holds one that was issued at ${held.issued_at} and works until ${held.grace_ends_at}`,
    {
      reason: 'older_lease',
      remedy: `${NOTHING_CHANGED} Of two leases in the same state, the one that was issued later is used, even if it ends earlier. Ask the issuer for a new lease.`,
    },
  );
}
