import { v7 as uuidv7 } from 'uuid';
import { ServiceError } from '../base/errors.ts';
import { formatTime } from '../lease/time.ts';
import { prepareInsert } from '../storage/prepare-rows-query.ts';
import { shareQuery } from '../storage/share-query.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import type { WriteOptions } from '../storage/write-queue.ts';
import { appendAudit, type AuditEvent } from './audit.ts';
import type { Holder } from './binding.ts';
import { installationScope, type Identity, type LeasePolicy } from './context.ts';
import { useDeviceProof, type CheckedProof } from './device-proof.ts';
import { markDeviceUsed, setMachine } from './devices.ts';
import {
  answerText,
  newLease,
  recordLease,
  type LeaseAnswer,
  type NewLease,
  type Warning,
} from './lease-record.ts';
import {
  planRenewal,
  readRequest,
  REPEAT_MS,
  type Planned,
  type RenewRequest,
  type RequestedRenewal,
} from './plan-renewal.ts';

export interface Renewed {
  /** Response body, see `LeaseAnswer`. A repeated request gets the same bytes. */
  readonly body: string;
  /** False if the response repeats an earlier one. */
  readonly fresh: boolean;
  readonly warnings: readonly Warning[];
}

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
  const renewal = readRequest(request);
  let { device } = proof;
  const sign = () => signDraft(identity, device, renewal);
  const issue = async (tx: Db, now: number, draft: SignedDraft | undefined) => {
    // Signed again for the current state of the device, if that has changed since its proof.
    device = await useDeviceProof(tx, now, proof);
    const actor = `device:${device.device_id}` as const;
    const event = { actor, action: 'identity.license.renew' };
    return issueRenewal(identity, tx, now, draft, { device, renewal, event });
  };
  return writeSigned(identity, sign, issue, { scope: installationScope(device) });
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
    if (fork !== undefined && isRefused(policy, planned)) return cloneSuspected(fork);
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

/** A lease that was signed before the transaction that issues it. */
interface SignedDraft {
  readonly lease: NewLease;
  readonly signature: Uint8Array;
  /** Time from which its terms count. */
  readonly now: number;
}

/** Rolls back a transaction that needs another lease than the signed one. */
class StaleDraft extends Error {}

/**
 * Signs a lease before the transaction that issues it, since all other writes wait for a
 * transaction. Signs again if the lease would differ by then, because the registry has changed.
 *
 * @param issue calls `issueRenewal`; an error that it returns is thrown after the transaction.
 */
export async function writeSigned(
  { storage, clock }: Identity,
  sign: () => Promise<SignedDraft | undefined>,
  issue: (tx: Db, now: number, draft: SignedDraft | undefined) => Promise<Renewed | ServiceError>,
  options: WriteOptions = {},
): Promise<Renewed> {
  for (;;) {
    const draft = await sign();
    try {
      const outcome = await storage.write((tx) => issue(tx, clock(), draft), options);
      // Thrown after the transaction, so that its audit entry is kept.
      if (outcome instanceof ServiceError) throw outcome;
      return outcome;
    } catch (error) {
      if (!(error instanceof StaleDraft)) throw error;
    }
  }
}

/** @returns undefined if no new lease is due; the transaction repeats the checks and decides. */
export async function signDraft(
  identity: Identity,
  device: DevicesTable,
  renewal: RequestedRenewal,
): Promise<SignedDraft | undefined> {
  const { storage, clock, policy } = identity;
  const now = clock();
  try {
    const planned = await planRenewal(identity, storage.read, now, device, renewal);
    if ('given' in planned || isRefused(policy, planned)) return undefined;
    const lease = leaseOf(policy, planned, uuidv7({ msecs: now }));
    return { lease, signature: planned.usable.sign(lease.toSign), now };
  } catch (error) {
    if (error instanceof ServiceError && error.code !== 'storage_unavailable') return undefined;
    throw error;
  }
}

/** Whether the lease is the one that the plan leads to, and does not end before it is issued. */
function isCurrent({ lease }: SignedDraft, policy: LeasePolicy, planned: Planned, now: number) {
  const { toSign } = leaseOf(policy, planned, lease.claims.lease_id);
  return Buffer.compare(toSign, lease.toSign) === 0 && planned.terms.grace_ends_at > now;
}

function leaseOf(
  policy: LeasePolicy,
  { usable, registered, terms, origin }: Planned,
  lease_id: string,
): NewLease {
  return newLease(usable, policy, registered, terms, origin, lease_id);
}

function isRefused({ clone_policy }: LeasePolicy, { fork }: Planned): boolean {
  return fork !== undefined && clone_policy === 'refuse';
}

/**
 * Issues the signed lease and stores the response for repeated requests.
 *
 * @param asked.event the audit event without its target.
 * @param asked.admit called before anything is recorded, unless the lease is refused.
 * @returns an error, to be thrown after the transaction, if a suspected clone is refused.
 * @throws ServiceError as `renewLease`; `StaleDraft` if the plan leads to another lease.
 */
export async function issueRenewal(
  identity: Identity,
  tx: Db,
  now: number,
  draft: SignedDraft | undefined,
  asked: {
    readonly device: DevicesTable;
    readonly renewal: RequestedRenewal;
    readonly event: Omit<AuditEvent, 'target'>;
    readonly admit?: () => Promise<void>;
  },
): Promise<Renewed | ServiceError> {
  const { device, renewal, event } = asked;
  const planned = await planRenewal(identity, tx, now, device, renewal, draft?.now);
  if ('given' in planned) return { body: planned.given, fresh: false, warnings: [] };
  const { registered, terms, origin, fork, warnings } = planned;
  const { policy } = identity;
  const { device_id, deployment_id } = device;
  const { renewal_id, hash } = renewal;
  if (fork !== undefined) {
    const refused = isRefused(policy, planned);
    await appendAudit(tx, now, {
      actor: `device:${device_id}`,
      action: 'identity.license.clone_suspected',
      target: `deployment:${deployment_id}`,
      details: { detail: fork, renewal_id, refused },
    });
    if (refused) return cloneSuspected(fork);
  }
  if (draft === undefined || !isCurrent(draft, policy, planned, now)) throw new StaleDraft();
  const { lease, signature } = draft;
  const { lease_id, expires_at } = lease.claims;
  await asked.admit?.();
  await appendAudit(tx, now, {
    ...event,
    target: `lease:${lease_id}`,
    details: {
      deployment_id,
      previous_lease_id: origin.previous?.lease_id ?? null,
      expires_at,
      ...(warnings.length > 0 && { warnings: warnings.map(({ code }) => code) }),
      ...event.details,
    },
  });
  const body = answerText(lease, signature, terms.limits, warnings);
  const answer = { lease_id, request_hash: hash, answer: body, answered_at: now };
  // In this order, because an answer refers to its lease.
  await Promise.all([
    recordLease(tx, lease, registered, terms, { ...origin, issued_by: event.actor }),
    storeAnswer(tx, { deployment_id, renewal_id, ...answer }),
  ]);
  await recordMachine(tx, now, device, origin);
  await markDeviceUsed(tx, now, device);
  return { body, fresh: true, warnings };
}

const storeAnswer = shareQuery(
  prepareInsert(
    'renewals',
    {
      deployment_id: 'text',
      renewal_id: 'text',
      lease_id: 'text',
      request_hash: 'text',
      answer: 'text',
      answered_at: 'bigint',
    },
    (insert) =>
      insert.onConflict((of) =>
        of.columns(['deployment_id', 'renewal_id']).doUpdateSet((row) => ({
          lease_id: row.ref('excluded.lease_id'),
          request_hash: row.ref('excluded.request_hash'),
          answer: row.ref('excluded.answer'),
          answered_at: row.ref('excluded.answered_at'),
        })),
      ),
  ),
);

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

function cloneSuspected(detail: string): ServiceError {
  return new ServiceError('credential_cloned', `${detail}: this device may have been cloned`, {
    remedy:
      'The lease on the machine stays valid. Check `service-local identity audit list`, then enroll each machine with its own code.',
  });
}
