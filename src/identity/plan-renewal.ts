import { hash as digest } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import type { Db, DevicesTable } from '../storage/tables.ts';
import { machineOf, purposeClaims } from './binding.ts';
import type { Identity } from './context.ts';
import { findCloneSign, hasRevokedLease, readDeviceLine } from './device-line.ts';
import { findInstallationTerms, type Origin, type Warning } from './lease-record.ts';
import { findPrevious, parsePresented, type PresentedLease } from './presented-lease.ts';
import { entitlementSet } from './registry.ts';
import { installationRevoked, machineRevoked, REINSTATE } from './revoke.ts';
import type { Signer } from './signing-key.ts';
import { usableSigner } from './signing-keys.ts';
import { leaseTerms, type InstallationTerms, type RequestedTerms, type Terms } from './terms.ts';

/** Request of a device. The registry determines entitlements and TTL. */
export interface RenewRequest {
  /** Chosen by the device; a repeated request with the same id gets the same response. */
  readonly renewal_id: string;
  /** Content of the lease file that the device holds, if any. */
  readonly lease?: unknown;
  /** `machineHash` of the machine; required by plans that bind leases to machines. */
  readonly machine_hash?: string | undefined;
}

/** Time for which a response is stored, so that a client that did not receive it can repeat the request. */
export const REPEAT_MS = 24 * 3_600_000;

export interface RequestedRenewal {
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

/** The lease that a renewal gets. */
export interface Planned {
  readonly usable: Signer;
  readonly registered: InstallationTerms;
  readonly terms: Terms;
  readonly origin: Omit<Origin, 'issued_by'>;
  /** Reason to suspect a clone of the device, as a sentence. */
  readonly fork: string | undefined;
  readonly warnings: readonly Warning[];
}

/** The stored response to a repeated request. */
interface Given {
  readonly given: string;
}

/**
 * Decides about a renewal without changing anything.
 *
 * @param issuedAt time from which the terms of the lease count.
 * @throws ServiceError as `renewLease`
 */
export async function planRenewal(
  { policy, signer }: Identity,
  tx: Db,
  now: number,
  device: DevicesTable,
  { renewal_id, presented, machine_hash, requested, leaseHash, hash }: RequestedRenewal,
  issuedAt = now,
): Promise<Planned | Given> {
  const line = await readDeviceLine(tx, device);
  const [previous, registered, isRevoked, before] = await Promise.all([
    presented && findPrevious(tx, presented, device, line),
    findInstallationTerms(tx, device.deployment_id),
    hasRevokedLease(tx, line),
    findStoredAnswer(tx, device.deployment_id, renewal_id),
  ]);
  if (policy.registry_enforced) {
    if (registered.revoked_at !== null) {
      throw await installationRevoked(tx, now, device.deployment_id, requested && REINSTATE);
    }
    if ((previous?.revoked_at ?? null) !== null || isRevoked) {
      throw await machineRevoked(tx, now, line);
    }
  }

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
  const terms = leaseTerms(policy, registered, requested ?? {}, issuedAt);
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
  const origin = { ...holder, renewal_id, previous: previous ?? null };
  return { usable, registered, terms, origin, fork, warnings };
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

function sha256(text: string): string {
  return digest('sha256', text);
}
