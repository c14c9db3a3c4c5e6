import { createHash, createPublicKey, verify } from 'node:crypto';
import { sql } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import { readClaims, type LeaseClaims } from '../lease/claims.ts';
import { parseEnvelope, PAYLOAD_TYPE, preAuthEncoding } from '../lease/envelope.ts';
import { LeaseError } from '../lease/refusal.ts';
import { formatTime, parseTime } from '../lease/time.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import { appendAudit, type AuditEvent } from './audit.ts';
import { machineOf, purposeClaims, type Holder } from './binding.ts';
import type { Identity } from './context.ts';
import { useDeviceProof, type CheckedProof } from './device-proof.ts';
import { markDeviceUsed, setMachine } from './devices.ts';
import { usableSigner } from './keys.ts';
import {
  answerText,
  findInstallationTerms,
  newLease,
  recordLease,
  type LeaseAnswer,
  type Warning,
} from './lease-record.ts';
import { entitlementSet } from './registry.ts';
import { installationRevoked, machineRevoked, REINSTATE } from './revoke.ts';
import type { Signer } from './signing-key.ts';
import { leaseTerms, type InstallationTerms, type Terms, type RequestedTerms } from './terms.ts';

/** Request of a device. The registry determines entitlements and TTL. */
export interface RenewRequest {
  /** Chosen by the device; a repeated request with the same id gets the same response. */
  readonly renewal_id: string;
  /** Content of the lease file that the device holds, if any. */
  readonly lease?: unknown;
  /** `machineHash` of the machine; required by plans that bind leases to machines. */
  readonly machine_hash?: string | undefined;
}

export interface Renewed {
  /** Response body, see `LeaseAnswer`. A repeated request gets the same bytes. */
  readonly body: string;
  /** False if the response repeats an earlier one. */
  readonly fresh: boolean;
  readonly warnings: readonly Warning[];
}

/** Time for which a response is stored, so that a client that did not receive it can repeat the request. */
const REPEAT_MS = 24 * 3_600_000;

/**
 * Issues the next lease of a device. The lease that it holds stays valid.
 *
 * @throws ServiceError `invalid_device_proof`, `license_lease_unavailable`, `license_revoked`,
 * `contract_ended`, `credential_cloned`, `idempotency_mismatch`, `invalid_request`.
 */
export async function renewLease(
  identity: Identity,
  proof: CheckedProof,
  request: RenewRequest,
): Promise<Renewed> {
  const { storage, clock } = identity;
  const asked = readRequest(request);
  const outcome = await storage.write(async (tx): Promise<Renewed | ServiceError> => {
    const now = clock();
    const device = await useDeviceProof(tx, now, proof);
    const actor = `device:${device.device_id}` as const;
    const event = { actor, action: 'identity.license.renew' };
    return issueRenewal(identity, tx, now, device, asked, event);
  });
  // Thrown after the transaction, so that its audit entry is kept.
  if (outcome instanceof ServiceError) throw outcome;
  return outcome;
}

export type DryRun = Omit<LeaseAnswer, 'lease' | 'lease_id'>;

/**
 * Runs all checks of a renewal and returns its result without issuing a lease. Records only that the
 * proof was used.
 *
 * @throws ServiceError as `renewLease`
 */
export async function dryRunRenewal(
  identity: Identity,
  proof: CheckedProof,
  request: RenewRequest,
): Promise<DryRun> {
  const { storage, clock, policy } = identity;
  const asked = readRequest(request);
  const outcome = await storage.write(async (tx): Promise<DryRun | ServiceError> => {
    const now = clock();
    const device = await useDeviceProof(tx, now, proof);
    const planned = await planRenewal(identity, tx, now, device, asked);
    if ('given' in planned) {
      const { lease: _lease, lease_id: _id, ...rest } = JSON.parse(planned.given) as LeaseAnswer;
      return rest;
    }
    const { fork, terms, warnings } = planned;
    if (fork !== undefined && policy.clone_policy === 'refuse') return cloned(fork);
    return {
      deployment_id: device.deployment_id,
      entitlements: terms.entitlements,
      issued_at: formatTime(terms.issued_at),
      expires_at: formatTime(terms.expires_at),
      grace_ends_at: formatTime(terms.grace_ends_at),
      limits: terms.limits,
      warnings,
    };
  });
  // Thrown after the transaction, so that the proof stays used.
  if (outcome instanceof ServiceError) throw outcome;
  return outcome;
}

/** A request of a device, from the device itself or through an administrator. */
interface Asked {
  readonly renewal_id: string;
  readonly held: Held | undefined;
  readonly machine_hash: string | undefined;
  /** Terms of the administrator; undefined for a request from the device itself. */
  readonly requested: RequestedTerms | undefined;
  /** Hash of the id of the presented lease. */
  readonly presented: string;
  /** Hash of the presented lease and of the terms of the administrator. */
  readonly hash: string;
}

/** @throws ServiceError `invalid_request` */
export function readRequest(
  { renewal_id, lease, machine_hash }: RenewRequest,
  requested?: RequestedTerms,
): Asked {
  const held = lease === undefined ? undefined : readHeld(lease);
  const presented = sha256(held?.claims.lease_id ?? '');
  const { entitlements, ttl_seconds, grace_period_seconds } = requested ?? {};
  const wished = [
    entitlements && entitlementSet(entitlements),
    ttl_seconds,
    grace_period_seconds,
    ...(requested?.ttl_max_seconds === undefined ? [] : [requested.ttl_max_seconds]),
  ];
  // Without terms, the hash equals that of the same request from the device itself.
  const isWish = wished.some((wish) => wish !== undefined);
  const hash = isWish ? `${presented} ${sha256(JSON.stringify(wished))}` : presented;
  return { renewal_id, held, machine_hash, requested, presented, hash };
}

interface Planned {
  readonly usable: Signer;
  readonly registered: InstallationTerms;
  readonly terms: Terms;
  readonly holder: Holder;
  readonly previous: Previous | undefined;
  /** Reason to suspect a clone of the device, as a sentence. */
  readonly fork: string | undefined;
  readonly warnings: readonly Warning[];
}

interface Given {
  readonly given: string;
}

/** @throws ServiceError as `renewLease` */
async function planRenewal(
  { policy, signer }: Identity,
  tx: Db,
  now: number,
  device: DevicesTable,
  { renewal_id, held, machine_hash, requested, presented, hash }: Asked,
): Promise<Planned | Given> {
  const line = await lineOf(tx, device);
  const previous = held && (await findHeld(tx, held, device, line));
  const registered = await findInstallationTerms(tx, device.deployment_id);
  if (policy.registry_enforced) {
    if (registered.revoked_at !== null) {
      throw await installationRevoked(tx, now, device.deployment_id, requested && REINSTATE);
    }
    if ((previous?.revoked_at ?? null) !== null || (await hasRevokedLease(tx, line))) {
      throw await machineRevoked(tx, now, line);
    }
  }

  const before = await answered(tx, device.deployment_id, renewal_id);
  if (before && !(before.request_hash.startsWith(presented) && line.includes(before.device_id!))) {
    throw new ServiceError(
      'idempotency_mismatch',
      `the renewal ${renewal_id} was asked for by another device or with another lease`,
      { remedy: 'Make a new renewal_id.' },
    );
  }
  // A key that was rotated since then gets a lease of its own.
  const isSame = before?.device_id === device.device_id && before.request_hash === hash;
  // An expired lease is not repeated: an offline request may take long to reach the machine.
  const isOver = before && now >= Math.min(before.answered_at + REPEAT_MS, before.grace_ends_at);
  if (before?.answer && isSame && !isOver) return { given: before.answer };

  const usable = await usableSigner(tx, signer);
  const terms = leaseTerms(policy, registered, requested ?? {}, now);
  const { device_id } = device;
  const holder = { device_id, machine_hash: machineOf(registered, device, machine_hash) };
  purposeClaims(policy, registered, holder);
  const warnings: Warning[] = [];
  const sign = await forkOf(tx, line, previous, renewal_id);
  const fork = sign && `${sign}, so there may be two of the device ${device_id}`;
  if (fork !== undefined) warnings.push({ code: 'credential_cloned', detail: fork });
  if (previous !== undefined && !previous.known) {
    const detail = `the lease ${previous.lease_id} is signed by this service and not in its registry`;
    warnings.push({ code: 'unknown_lease', detail });
  }
  return { usable, registered, terms, holder, previous, fork, warnings };
}

/**
 * Issues a lease and stores the response for repeated requests.
 *
 * @param event the audit event without its target.
 * @param admit called before anything is recorded, unless the lease is refused.
 * @returns an error, to be thrown after the transaction, if a suspected clone is refused.
 * @throws ServiceError as `renewLease`
 */
export async function issueRenewal(
  identity: Identity,
  tx: Db,
  now: number,
  device: DevicesTable,
  asked: Asked,
  { actor, action, details }: Omit<AuditEvent, 'target'>,
  admit = async (): Promise<void> => {},
): Promise<Renewed | ServiceError> {
  const planned = await planRenewal(identity, tx, now, device, asked);
  if ('given' in planned) return { body: planned.given, fresh: false, warnings: [] };
  const { usable, registered, terms, holder, previous, fork, warnings } = planned;
  const { policy } = identity;
  const { device_id, deployment_id } = device;
  const { renewal_id, hash } = asked;
  if (fork !== undefined) {
    await appendAudit(tx, now, {
      actor: `device:${device_id}`,
      action: 'identity.license.clone_suspected',
      target: `deployment:${deployment_id}`,
      details: { detail: fork, renewal_id, refused: policy.clone_policy === 'refuse' },
    });
    if (policy.clone_policy === 'refuse') return cloned(fork);
  }
  await admit();
  const origin = { issued_by: actor, ...holder, renewal_id, previous: previous ?? null };
  const lease = newLease(usable, policy, registered, terms, origin, now);
  const { lease_id } = lease.claims;
  await appendAudit(tx, now, {
    actor,
    action,
    target: `lease:${lease_id}`,
    details: {
      deployment_id,
      previous_lease_id: previous?.lease_id ?? null,
      expires_at: lease.claims.expires_at,
      ...(warnings.length > 0 && { warnings: warnings.map(({ code }) => code) }),
      ...details,
    },
  });
  await recordLease(tx, lease, registered, terms, origin);
  const body = answerText(lease, usable.sign(lease.toSign), terms.limits, warnings);
  const answer = { lease_id, request_hash: hash, answer: body, answered_at: now };
  await tx
    .insertInto('renewals')
    .values({ deployment_id, renewal_id, ...answer })
    .onConflict((conflict) => conflict.columns(['deployment_id', 'renewal_id']).doUpdateSet(answer))
    .execute();
  await recordMachine(tx, now, device, holder);
  await markDeviceUsed(tx, now, device);
  return { body, fresh: true, warnings };
}

/** Records the machine of a device that was enrolled before its plan bound leases to machines. */
async function recordMachine(
  tx: Db,
  now: number,
  device: DevicesTable,
  { machine_hash }: Holder,
): Promise<void> {
  const { device_id, deployment_id } = device;
  if (machine_hash === device.machine_hash) return;
  await appendAudit(tx, now, {
    actor: `device:${device_id}`,
    action: 'identity.device.bind_machine',
    target: `device:${device_id}`,
    details: { deployment_id, machine_hash },
  });
  await setMachine(tx, { device_id, machine_hash });
}

/** Deletes expired responses, which are the only stored copies of signed leases. */
export async function eraseAnswers(tx: Db, now: number): Promise<void> {
  await tx
    .updateTable('renewals')
    .set({ answer: null })
    .where('answer', 'is not', null)
    .where('answered_at', '<=', now - REPEAT_MS)
    .execute();
}

interface Held {
  readonly claims: LeaseClaims;
  readonly envelope: ReturnType<typeof parseEnvelope>;
}

/** @throws ServiceError `invalid_request` */
function readHeld(lease: unknown): Held {
  try {
    const envelope = parseEnvelope(JSON.stringify(lease));
    return { claims: readClaims(envelope.payload), envelope };
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    throw invalidLease(error.reason, error.message);
  }
}

interface Previous {
  readonly lease_id: string;
  readonly lineage_id: string;
  readonly issued_at: number;
  readonly revoked_at: number | null;
  /** Null for a lease that was issued to an administrator. */
  readonly device_id: string | null;
  /** Whether the registry contains the lease. */
  readonly known: boolean;
}

/**
 * Finds the presented lease. A validly signed lease that the registry lacks is accepted, because it may
 * have been lost when a backup was restored.
 */
async function findHeld(
  tx: Db,
  { claims, envelope }: Held,
  device: DevicesTable,
  line: readonly string[],
): Promise<Previous> {
  const { lease_id } = claims;
  const row = await tx
    .selectFrom('license_leases')
    .select(['deployment_id', 'device_id', 'lineage_id', 'issued_at', 'revoked_at'])
    .where('lease_id', '=', lease_id)
    .executeTakeFirst();
  if (row === undefined && !(await isSigned(tx, envelope))) {
    throw invalidLease('unknown_lease', `the lease ${lease_id} was not issued by this service`);
  }
  const previous = row ?? {
    deployment_id: claims.deployment_id,
    device_id: claims.device_thumbprint ?? null,
    lineage_id: lease_id,
    issued_at: parseTime(claims.issued_at)!,
    revoked_at: null,
  };
  const { deployment_id, device_id } = previous;
  if (deployment_id !== device.deployment_id) {
    throw otherLease('other_deployment', `the lease ${lease_id} belongs to another installation`);
  }
  if (device_id !== null && !line.includes(device_id)) {
    throw otherLease('other_device', `the lease ${lease_id} was issued to another device`);
  }
  return { lease_id, ...previous, known: row !== undefined };
}

function otherLease(reason: string, message: string): ServiceError {
  return new ServiceError('not_allowed', message, {
    reason,
    remedy: 'Send the latest lease of this device, or none.',
  });
}

/** Whether a signing key of this service signed the lease, including retired keys. */
async function isSigned(tx: Db, { payload, signatures }: Held['envelope']): Promise<boolean> {
  // Other texts are not ids of keys, and the database may reject them.
  const ids = signatures.map(({ keyid }) => keyid).filter((id) => /^[\w-]{43}$/.test(id));
  if (ids.length === 0) return false;
  const keys = await tx
    .selectFrom('signing_keys')
    .select(['public_key_id', 'x'])
    .where('public_key_id', 'in', ids)
    .execute();
  const signed = preAuthEncoding(PAYLOAD_TYPE, payload);
  return signatures.some(({ keyid, bytes }) => {
    const x = keys.find(({ public_key_id }) => public_key_id === keyid)?.x;
    if (x === undefined) return false;
    const jwk = { kty: 'OKP', crv: 'Ed25519', x };
    return verify(null, signed, createPublicKey({ key: jwk, format: 'jwk' }), bytes);
  });
}

function invalidLease(reason: string, message: string): ServiceError {
  return new ServiceError('invalid_request', message, {
    reason,
    problems: [{ code: reason, pointer: '/lease', message }],
    remedy: 'Send the lease file unchanged, or none.',
  });
}

/** Ids of the device and of the keys that it replaced, newest first. */
async function lineOf(tx: Db, { device_id, replaces }: DevicesTable): Promise<readonly string[]> {
  if (replaces === null) return [device_id];
  const { rows } = await sql<{ device_id: string }>`
    with recursive line (device_id, place) as (
      select cast(${device_id} as text), 0
      union all
      select replaces, place + 1 from devices join line on devices.device_id = line.device_id
      where replaces is not null
    )
    select device_id from line order by place`.execute(tx);
  return rows.map((row) => row.device_id);
}

/** Also used for requests without a lease, so that omitting a revoked lease does not help. */
async function hasRevokedLease(tx: Db, line: readonly string[]): Promise<boolean> {
  const revoked = await tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where('device_id', 'in', line)
    .where('revoked_at', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return revoked !== undefined;
}

interface Answered {
  readonly request_hash: string;
  readonly answer: string | null;
  readonly answered_at: number;
  readonly grace_ends_at: number;
  readonly device_id: string | null;
}

async function answered(
  tx: Db,
  installation: string,
  renewal: string,
): Promise<Answered | undefined> {
  return tx
    .selectFrom('renewals')
    .innerJoin('license_leases', 'license_leases.lease_id', 'renewals.lease_id')
    .select(['request_hash', 'answer', 'answered_at', 'grace_ends_at', 'device_id'])
    .where('renewals.deployment_id', '=', installation)
    .where('renewals.renewal_id', '=', renewal)
    .executeTakeFirst();
}

/**
 * Looks for signs of a clone: a device renews each lease once, so another renewal of the same lease, or
 * a request that omits the latest lease, suggests that there are two copies of the device. A repeated
 * request is no sign of a clone.
 *
 * @returns the reason as a sentence.
 */
async function forkOf(
  tx: Db,
  line: readonly string[],
  previous: Previous | undefined,
  renewalId: string,
): Promise<string | undefined> {
  const other = tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where('renewal_id', '!=', renewalId)
    .limit(1);
  if (previous !== undefined) {
    const child = await other.where('previous_lease_id', '=', previous.lease_id).executeTakeFirst();
    if (child) return `the lease ${previous.lease_id} was renewed before, by another request`;
    if (previous.known && previous.device_id !== null) return undefined;
  }
  // A lease that a restored database lacks is newer than all leases that it contains.
  const since = previous === undefined || previous.known ? 0 : previous.issued_at + 1;
  const own = await other
    .where('device_id', 'in', line)
    .where('issued_at', '>=', since)
    .executeTakeFirst();
  return own && `it had the lease ${own.lease_id} and presents ${previous ? 'another' : 'none'}`;
}

function cloned(detail: string): ServiceError {
  return new ServiceError('credential_cloned', `${detail}: this device may have been cloned`, {
    remedy:
      'The lease on the machine stays valid. Check `service-local identity audit list`, then enroll each machine with its own code.',
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
