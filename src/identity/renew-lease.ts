import { hash as digest } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import { formatTime } from '../lease/time.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import { appendAudit, type AuditEvent } from './audit.ts';
import { machineOf, purposeClaims, type Holder } from './binding.ts';
import type { Identity } from './context.ts';
import { useDeviceProof, type CheckedProof } from './device-proof.ts';
import { findCloneSign, hasRevokedLease, readDeviceLine } from './device-line.ts';
import { markDeviceUsed, setMachine } from './devices.ts';
import { usableSigner } from './signing-keys.ts';
import {
  answerText,
  findInstallationTerms,
  newLease,
  recordLease,
  type LeaseAnswer,
  type Warning,
} from './lease-record.ts';
import {
  findPrevious,
  parsePresented,
  type PresentedLease,
  type PreviousLease,
} from './presented-lease.ts';
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
  const renewal = readRequest(request);
  const outcome = await storage.write(async (tx): Promise<Renewed | ServiceError> => {
    const now = clock();
    const device = await useDeviceProof(tx, now, proof);
    const actor = `device:${device.device_id}` as const;
    const event = { actor, action: 'identity.license.renew' };
    return issueRenewal(identity, tx, now, device, renewal, event);
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
  const renewal = readRequest(request);
  const outcome = await storage.write(async (tx): Promise<DryRun | ServiceError> => {
    const now = clock();
    const device = await useDeviceProof(tx, now, proof);
    const planned = await planRenewal(identity, tx, now, device, renewal);
    if ('given' in planned) {
      const { lease: _lease, lease_id: _id, ...rest } = JSON.parse(planned.given) as LeaseAnswer;
      return rest;
    }
    const { fork, terms, warnings } = planned;
    if (fork !== undefined && policy.clone_policy === 'refuse') return cloneSuspected(fork);
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

interface RequestedRenewal {
  readonly renewal_id: string;
  readonly presented: PresentedLease | undefined;
  readonly machine_hash: string | undefined;
  /** Terms of the administrator; undefined for a request from the device itself. */
  readonly requested: RequestedTerms | undefined;
  /** Hash of the id of the presented lease. */
  readonly leaseHash: string;
  /** Hash of the presented lease and of the terms of the administrator. */
  readonly hash: string;
}

/** @throws ServiceError `invalid_request` */
export function readRequest(
  { renewal_id, lease, machine_hash }: RenewRequest,
  requested?: RequestedTerms,
): RequestedRenewal {
  const presented = lease === undefined ? undefined : parsePresented(lease);
  const leaseHash = sha256(presented?.claims.lease_id ?? '');
  const { entitlements, ttl_seconds, grace_period_seconds } = requested ?? {};
  const requestedTerms = [
    entitlements && entitlementSet(entitlements),
    ttl_seconds,
    grace_period_seconds,
    ...(requested?.ttl_max_seconds === undefined ? [] : [requested.ttl_max_seconds]),
  ];
  // Without terms, the hash equals that of the same request from the device itself.
  const hasTerms = requestedTerms.some((term) => term !== undefined);
  const hash = hasTerms ? `${leaseHash} ${sha256(JSON.stringify(requestedTerms))}` : leaseHash;
  return { renewal_id, presented, machine_hash, requested, leaseHash, hash };
}

interface Planned {
  readonly usable: Signer;
  readonly registered: InstallationTerms;
  readonly terms: Terms;
  readonly holder: Holder;
  readonly previous: PreviousLease | undefined;
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
  { renewal_id, presented, machine_hash, requested, leaseHash, hash }: RequestedRenewal,
): Promise<Planned | Given> {
  const line = await readDeviceLine(tx, device);
  const previous = presented && (await findPrevious(tx, presented, device, line));
  const registered = await findInstallationTerms(tx, device.deployment_id);
  if (policy.registry_enforced) {
    if (registered.revoked_at !== null) {
      throw await installationRevoked(tx, now, device.deployment_id, requested && REINSTATE);
    }
    if ((previous?.revoked_at ?? null) !== null || (await hasRevokedLease(tx, line))) {
      throw await machineRevoked(tx, now, line);
    }
  }

  const before = await findStoredAnswer(tx, device.deployment_id, renewal_id);
  if (before && !(before.request_hash.startsWith(leaseHash) && line.includes(before.device_id!))) {
    throw new ServiceError(
      'idempotency_mismatch',
      `the renewal ${renewal_id} was requested by another device or with another lease`,
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
  const sign = await findCloneSign(tx, line, previous, renewal_id);
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
  renewal: RequestedRenewal,
  { actor, action, details }: Omit<AuditEvent, 'target'>,
  admit = async (): Promise<void> => {},
): Promise<Renewed | ServiceError> {
  const planned = await planRenewal(identity, tx, now, device, renewal);
  if ('given' in planned) return { body: planned.given, fresh: false, warnings: [] };
  const { usable, registered, terms, holder, previous, fork, warnings } = planned;
  const { policy } = identity;
  const { device_id, deployment_id } = device;
  const { renewal_id, hash } = renewal;
  if (fork !== undefined) {
    await appendAudit(tx, now, {
      actor: `device:${device_id}`,
      action: 'identity.license.clone_suspected',
      target: `deployment:${deployment_id}`,
      details: { detail: fork, renewal_id, refused: policy.clone_policy === 'refuse' },
    });
    if (policy.clone_policy === 'refuse') return cloneSuspected(fork);
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

interface StoredAnswer {
  readonly request_hash: string;
  readonly answer: string | null;
  readonly answered_at: number;
  readonly grace_ends_at: number;
  readonly device_id: string | null;
}

async function findStoredAnswer(
  tx: Db,
  installation: string,
  renewal: string,
): Promise<StoredAnswer | undefined> {
  return tx
    .selectFrom('renewals')
    .innerJoin('license_leases', 'license_leases.lease_id', 'renewals.lease_id')
    .select(['request_hash', 'answer', 'answered_at', 'grace_ends_at', 'device_id'])
    .where('renewals.deployment_id', '=', installation)
    .where('renewals.renewal_id', '=', renewal)
    .executeTakeFirst();
}

function cloneSuspected(detail: string): ServiceError {
  return new ServiceError('credential_cloned', `${detail}: this device may have been cloned`, {
    remedy:
      'The lease on the machine stays valid. Check `service-local identity audit list`, then enroll each machine with its own code.',
  });
}

function sha256(text: string): string {
  return digest('sha256', text);
}
