import type { ServiceError } from '../base/errors.ts';
import type { StorageService } from '../storage/storage.ts';
import type { Signer } from './signing-key.ts';

/** Dependencies of the identity service. */
export interface Identity extends StorageService {
  readonly policy: LeasePolicy;
  /** The signing key, or the reason why none can be used; only issuing needs one. */
  readonly signer: Signer | ServiceError;
}

/** Sufficient for operations that neither issue nor sign leases. */
export type IdentityStore = StorageService;

/** Settings of the server for all leases. */
export interface LeasePolicy {
  readonly issuer: string;
  /** Default for plans that name no product. */
  readonly product: string;
  /** Default if request, contract and plan set no TTL. */
  readonly ttl_seconds: number;
  readonly ttl_max_seconds: number;
  readonly grace_period_seconds: number;
  readonly grace_period_max_seconds: number;
  /** Whether leases of revoked installations and devices are refused. */
  readonly registry_enforced: boolean;
  /** Reaction to a suspected clone of a device: raise an alert, or also refuse the lease. */
  readonly clone_policy: 'alert' | 'refuse';
}

/** Devices renew at most 30 times an hour; the minimum leaves time for failed attempts. */
export const TTL_MIN_SECONDS = 300;

/** Scope of writes that change only one installation with its devices, leases and renewals. */
export function installationScope({ deployment_id }: { readonly deployment_id: string }): string {
  return `installation:${deployment_id}`;
}
