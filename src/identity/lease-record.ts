import { ServiceError } from '../base/errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { encodeEnvelope, leaseToSign } from '../lease/envelope.ts';
import { formatTime } from '../lease/time.ts';
import { prepareInsert } from '../storage/prepare-rows-query.ts';
import { prepareSharedRead, shareQuery } from '../storage/share-query.ts';
import type { Db } from '../storage/tables.ts';
import type { Actor } from './audit.ts';
import { purposeClaims, type Holder } from './binding.ts';
import type { LeasePolicy } from './context.ts';
import { entitlementSet } from './registry.ts';
import type { Signer } from './signing-key.ts';
import type { InstallationTerms, Limit, Terms } from './terms.ts';

/** Response to issuing and renewing. */
export interface LeaseAnswer {
  readonly lease: unknown;
  readonly lease_id: string;
  readonly deployment_id: string;
  readonly entitlements: readonly string[];
  /** RFC 3339, as are the other times. */
  readonly issued_at: string;
  readonly expires_at: string;
  readonly grace_ends_at: string;
  readonly limits: readonly Limit[];
  readonly warnings: readonly Warning[];
}

/** A finding to investigate; the lease itself is valid. */
export interface Warning {
  readonly code: 'credential_cloned' | 'unknown_lease';
  readonly detail: string;
}

export interface Origin extends Holder {
  readonly issued_by: Actor;
  readonly renewal_id: string | null;
  /** The lease that it renews. */
  readonly previous: { readonly lease_id: string; readonly lineage_id: string } | null;
}

/** @throws ServiceError `not_found` */
export async function findInstallationTerms(
  db: Db,
  installationId: string,
): Promise<InstallationTerms & { readonly revoked_at: number | null }> {
  const row = await selectInstallationTerms(db, installationId);
  if (row === undefined) {
    throw new ServiceError('not_found', `there is no installation ${installationId}`, {
      remedy: 'Register it with `service-local identity deployments create`.',
    });
  }
  const names = [...(JSON.parse(row.included) as string[]), ...(JSON.parse(row.extra) as string[])];
  return {
    deployment_id: row.deployment_id,
    revoked_at: row.revoked_at,
    customer_id: row.customer_id,
    contract_id: row.contract_id,
    contract_ends_at: row.contract_ends_at,
    entitlements: entitlementSet(names),
    ttl_seconds: row.contract_ttl ?? row.plan_ttl,
    grace_period_seconds: row.contract_grace ?? row.plan_grace,
    plan_id: row.plan_id,
    product: row.product,
    binding: row.binding,
  };
}

const selectInstallationTerms = prepareSharedRead('deployments.deployment_id', (db) =>
  db
    .selectFrom('deployments')
    .innerJoin('contracts', 'contracts.contract_id', 'deployments.contract_id')
    .innerJoin('plans', 'plans.plan_id', 'contracts.plan_id')
    .select([
      'deployments.deployment_id',
      'deployments.revoked_at',
      'contracts.contract_id',
      'contracts.customer_id',
      'contracts.ends_at as contract_ends_at',
      'contracts.entitlements as extra',
      'contracts.ttl_seconds as contract_ttl',
      'contracts.grace_period_seconds as contract_grace',
      'plans.entitlements as included',
      'plans.ttl_seconds as plan_ttl',
      'plans.grace_period_seconds as plan_grace',
      'plans.plan_id',
      'plans.product',
      'plans.binding',
    ]),
);

export interface NewLease {
  readonly claims: LeaseClaims;
  readonly payload: Uint8Array;
  readonly toSign: Uint8Array;
}

/** @throws ServiceError as `purposeClaims` */
export function newLease(
  signer: Signer,
  policy: LeasePolicy,
  registered: InstallationTerms,
  terms: Terms,
  origin: Omit<Origin, 'issued_by'>,
  lease_id: string,
): NewLease {
  const { device_id, renewal_id, previous } = origin;
  const claims: LeaseClaims = {
    lease_id,
    deployment_id: registered.deployment_id,
    customer_id: registered.customer_id,
    entitlements: terms.entitlements,
    issued_at: formatTime(terms.issued_at),
    expires_at: formatTime(terms.expires_at),
    grace_ends_at: formatTime(terms.grace_ends_at),
    ttl_seconds: terms.ttl_seconds,
    grace_period_seconds: terms.grace_period_seconds,
    public_key_id: signer.publicKeyId,
    issuer: policy.issuer,
    ...(renewal_id !== null && { renewal_id }),
    ...(previous !== null && { previous_lease_id: previous.lease_id }),
    ...(device_id !== null && { device_thumbprint: device_id }),
    ...purposeClaims(policy, registered, origin),
  };
  return { claims, ...leaseToSign(claims) };
}

/** Records the claims of a lease, without its signature. */
export async function recordLease(
  tx: Db,
  { claims }: NewLease,
  registered: InstallationTerms,
  terms: Terms,
  origin: Origin,
): Promise<void> {
  const { lease_id } = claims;
  await insertLease(tx, {
    lease_id,
    deployment_id: registered.deployment_id,
    customer_id: registered.customer_id,
    contract_id: registered.contract_id,
    lineage_id: origin.previous?.lineage_id ?? lease_id,
    previous_lease_id: origin.previous?.lease_id ?? null,
    renewal_id: origin.renewal_id,
    device_id: origin.device_id,
    issued_by: origin.issued_by,
    public_key_id: claims.public_key_id,
    entitlements: JSON.stringify(terms.entitlements),
    issued_at: terms.issued_at,
    expires_at: terms.expires_at,
    grace_ends_at: terms.grace_ends_at,
    revoked_at: null,
    revoked_by: null,
    revoked_reason: null,
  });
}

const insertLease = shareQuery(
  prepareInsert('license_leases', {
    lease_id: 'text',
    deployment_id: 'text',
    customer_id: 'text',
    contract_id: 'text',
    lineage_id: 'text',
    previous_lease_id: 'text',
    renewal_id: 'text',
    device_id: 'text',
    issued_by: 'text',
    public_key_id: 'text',
    entitlements: 'text',
    issued_at: 'bigint',
    expires_at: 'bigint',
    grace_ends_at: 'bigint',
    revoked_at: 'bigint',
    revoked_by: 'text',
    revoked_reason: 'text',
  }),
);

/** Serializes the response; a repeated request gets these bytes again. */
export function answerText(
  { claims, payload }: NewLease,
  signature: Uint8Array,
  limits: readonly Limit[],
  warnings: readonly Warning[],
): string {
  const { lease_id, deployment_id, entitlements, issued_at, expires_at, grace_ends_at } = claims;
  const answer: Omit<LeaseAnswer, 'lease'> = {
    lease_id,
    deployment_id,
    entitlements,
    issued_at,
    expires_at,
    grace_ends_at,
    limits,
    warnings,
  };
  const lease = encodeEnvelope(payload, [{ keyid: claims.public_key_id, bytes: signature }]);
  return `{"lease":${lease},${JSON.stringify(answer).slice(1)}`;
}
