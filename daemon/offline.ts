import { v7 as uuidv7 } from 'uuid';
import { deviceKeyAt, readDeviceKey } from '../src/client/device-key.ts';
import { makeOfflineRequest } from '../src/client/device-proof.ts';
import { dropFormerKey } from '../src/client/former-key.ts';
import { judgeKeysetText } from '../src/client/keyset.ts';
import { ROOT_REASONS } from '../src/client/lease-server.ts';
import { storeLease, storeLicense } from '../src/client/lease-store.ts';
import { INTERACTIVE_LOCK_WAIT_MS, withLock } from '../src/client/lock.ts';
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
import { readState, writeState } from './state.ts';

export interface OfflineRequest {
  /** For `offline_request` of the administrator who issues the lease. */
  readonly jwt: string;
  readonly device_id: string;
  readonly renewal_id: string;
  /** The lease that it would follow. */
  readonly lease_id: string | null;
}

/**
 * Makes the request for the next lease of a machine without a network, and its key when it has none.
 * Until a lease answers it, it is the same renewal that is asked for again.
 *
 * @param name what people call the machine.
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
    const presented = held && !without_lease && isFor(key.device_id, held.claims);
    const lease = presented ? (JSON.parse(held.text) as unknown) : undefined;
    const machine_hash = await machineHash();
    const asked = { name, renewal_id, ...(presented && { lease }), machine_hash };
    const jwt = makeOfflineRequest(key, asked, now);
    return { jwt, device_id: key.device_id, renewal_id, lease_id: presented ? lease_id : null };
  });
}

/** What somebody brought. */
export interface Brought {
  /** The content of a lease file. */
  readonly lease: string;
  /** Keys that came in the same file: whoever made up the lease has made up these. */
  readonly enclosed?: string | undefined;
  /** Keys that the user named. */
  readonly named?: string | undefined;
}

/** The document of lease and keyset that `identity leases issue --request` writes, in its parts. */
export function partsOf(
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

/** A lease that verified. */
export interface Vouched {
  readonly claims: LeaseClaims;
  /** Whose keys it verified by. */
  readonly by: 'named' | 'machine' | 'enclosed';
  readonly trust: HeldTrust;
  /** For the keyset file; undefined where the keys of the machine stay. */
  readonly text: string | undefined;
}

/**
 * Verifies a lease as `importLease` does: by the keys that the user named; otherwise by those in the
 * same file, if this machine trusts them or trusts no keys yet; otherwise by those of this machine.
 *
 * @param pin fingerprint of the pinned root.
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `invalid_data` with a `LeaseReason`
 */
export function verifyBrought(
  { lease, enclosed, named }: Brought,
  { trusted, keyset }: Pick<License, 'trusted' | 'keyset'>,
  { pin, now }: { readonly pin: string | undefined; readonly now: number },
): Vouched {
  const brought = named ?? enclosed;
  const held = named === undefined ? trusted : undefined;
  const judged = brought === undefined ? undefined : judgeKeysetText(brought, { pin, held, now });
  if (judged?.ok === false && held === undefined) {
    const isPinned = pin !== undefined && ROOT_REASONS.has(judged.reason);
    throw refused(
      'the keyset',
      judged,
      isPinned ? `${NOTHING_CHANGED} ${pinRemedy(pin)}` : undefined,
    );
  }
  const isTaken = judged?.ok === true;
  const trust = isTaken ? judged.trust : trusted;
  if (trust === undefined) {
    const missing = keyset.ok
      ? { reason: 'unknown_key' as const, detail: 'there is none' }
      : keyset;
    throw refused('the keyset of this machine', missing, NAME_KEYS);
  }
  const result = verifyLease(lease, trust.keys);
  if (!result.ok) throw refused('the lease', { ...result, detail: whyRefused(result) });
  const by = named !== undefined ? 'named' : trusted === undefined ? 'enclosed' : 'machine';
  return { claims: result.claims, by, trust, text: isTaken ? judged.text : undefined };
}

export interface Imported extends Pick<Vouched, 'claims' | 'by'> {
  /** The ids of the keys by which leases verify from now on. */
  readonly key_ids: readonly string[];
  /** False when it was there already. */
  readonly isNew: boolean;
}

export interface ImportOptions {
  /** `machineHash` of this machine; by default as `ownMachineHash` reads it. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
  /** Accepts a lease of another installation or issuer. */
  readonly replace?: boolean;
}

/**
 * Stores a lease from a file, and its keys if they are trusted. The lease must verify, be for this
 * machine, and be no worse than a held lease that works. Otherwise nothing changes: a
 * renewal that is pending stays so, since the server gives another lease for it when the one that was
 * brought has ended.
 *
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `invalid_data` with a reason, `license_invalid` for a lease that has ended;
 * `conflict` with a reason for what does not go with the lease that is held, and while another
 * process changes the license files; `output_not_writable`.
 */
export async function importLease(
  files: LicenseFiles,
  brought: Brought,
  now: number,
  { replace = false, machineHash }: ImportOptions = {},
): Promise<Imported> {
  return withLock(files.lock, INTERACTIVE_LOCK_WAIT_MS, async () => {
    const license = await readLicense(files, now);
    const { pin } = files;
    // Keys in the file count only if this machine has something that can vouch for them, or is new.
    const mayVouch = license.trusted !== undefined || pin !== undefined || isFirst(license);
    const parts = mayVouch ? brought : { ...brought, enclosed: undefined };
    const { claims, by, trust, text } = verifyBrought(parts, license, { pin, now });
    const key = await readDeviceKey(files.key);
    if (!isFor(key?.device_id, claims)) throw otherDevice(claims, key?.device_id);
    const lease = { path: files.lease, text: brought.lease, claims };
    const [unusable] = (await leasesHere(files, [lease], { machineHash })).refused;
    if (unusable !== undefined) throw refused('the lease', unusable, OTHER_MACHINE);
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

/** The keyset document of this machine for its trust anchor; undefined if there is no usable one. */
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

/** Whether there are no keys, and no copy of a lease, good or bad. */
function isFirst({ keyset, refused: files, leases }: License): boolean {
  const isNone = files.every(({ reason }) => reason === 'missing') && leases.length === 0;
  return isNone && !keyset.ok && keyset.reason === 'unknown_key';
}

/** One that names no device is for whoever has it. */
function isFor(device_id: string | undefined, { device_thumbprint }: LeaseClaims): boolean {
  return device_thumbprint === undefined || device_thumbprint === device_id;
}

const NOTHING_CHANGED = 'Nothing was changed.';

const NAME_KEYS =
  'Name the keys of its issuer, the new ones where they have changed, with --keyset FILE: what is at /.well-known/license-keys.json of the server, or the file of the lease itself where that has keys and you know who made it.';

function refused(
  what: string,
  { reason, detail }: Omit<Refused, 'ok'>,
  remedy = reason === 'unknown_key'
    ? NAME_KEYS
    : 'Have whoever issued it send the file again, as it was written.',
): ServiceError {
  return new ServiceError('invalid_data', `${what} is refused: ${detail}`, { reason, remedy });
}

/** What a reason means, and what it was seen by. */
export function whyRefused({ reason, detail }: Omit<Refused, 'ok'>): string {
  const sentence = LEASE_REASONS[reason].replace(/\.$/, '');
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)} (${detail})`;
}

const OTHER_MACHINE = `${NOTHING_CHANGED} Ask for a lease for this machine with \`service-local license export-request\`.`;

function otherDevice(
  { device_thumbprint }: LeaseClaims,
  device_id: string | undefined,
): ServiceError {
  const own = device_id === undefined ? 'has no device key' : `is the device ${device_id}`;
  return new ServiceError(
    'invalid_data',
    `the lease is for the device ${device_thumbprint}, and this machine ${own}`,
    {
      reason: 'other_device',
      remedy: `${NOTHING_CHANGED} Ask for a lease for this machine with \`service-local license export-request\`.`,
    },
  );
}

function ended({ grace_ends_at }: LeaseClaims): ServiceError {
  return new ServiceError('license_invalid', `the lease ended on ${grace_ends_at}`, {
    reason: 'expired',
    remedy: `${NOTHING_CHANGED} Ask for a new one with \`service-local license export-request\`; if it is new, set the clock of this machine.`,
  });
}

/** @throws ServiceError `conflict` for a lease of another installation or issuer than the anchor names */
export function refuseOtherOwner(owner: License['owner'], claims: LeaseClaims): void {
  if (owner === undefined) return;
  const { installationId, issuer } = owner;
  if (claims.issuer !== issuer) {
    throw otherOwner('other_issuer', `the lease is of the issuer ${claims.issuer}`, issuer);
  }
  if (claims.deployment_id !== installationId) {
    const what = `the lease is for the installation ${claims.deployment_id}`;
    throw otherOwner('other_installation', what, installationId);
  }
}

function otherOwner(reason: LeaseReason, what: string, expected: string): ServiceError {
  return new ServiceError('conflict', `${what}, and this machine accepts leases of ${expected}`, {
    reason,
    remedy: `${NOTHING_CHANGED} To move this machine there, enroll it again with \`service-local license enroll\` and a new code; or, without a network, run \`service-local license import FILE --replace\`.`,
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
    `the lease is for the installation ${claims.deployment_id}, and this machine holds one for ${held.claims.deployment_id}`,
    {
      reason: 'other_deployment',
      remedy: `${NOTHING_CHANGED} If that is meant, move ${path} and ${backupOf(path)} away first, after \`service-local daemon stop\`.`,
    },
  );
}

function worse({ claims: held }: HeldLease, { claims }: HeldLease): ServiceError {
  return new ServiceError(
    'conflict',
    `the lease of ${claims.issued_at} works until ${claims.grace_ends_at}; this machine holds a better one of ${held.issued_at}, which works until ${held.grace_ends_at}`,
    { reason: 'older_lease', remedy: `${NOTHING_CHANGED} What is held goes on.` },
  );
}
