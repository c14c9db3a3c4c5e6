import type { ServiceError } from '../base/errors.ts';
import type { Storage } from '../storage/storage.ts';
import type { Signer } from './signing-key.ts';

/** What every part of the identity service works with. */
export interface Identity {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  readonly policy: LeasePolicy;
  /** Or why there is none: all but issuing works without. */
  readonly signer: Signer | ServiceError;
}

/** What an operator decides about leases, once for all of them. */
export interface LeasePolicy {
  /** Named in every lease. */
  readonly issuer: string;
  /** Product of leases whose plan names none. */
  readonly product: string;
  /** Of leases for which neither request, contract nor plan says one. */
  readonly ttl_seconds: number;
  readonly ttl_max_seconds: number;
  readonly grace_period_seconds: number;
  readonly grace_period_max_seconds: number;
  /** Whether what is revoked is refused renewal. */
  readonly registry_enforced: boolean;
  /** What to do when a lease is renewed a second time: tell the operator, or also refuse. */
  readonly clone_policy: 'alert' | 'refuse';
}

/**
 * A device asks at most 30 times an hour, so that one of less than three minutes would lapse; this
 * leaves room for attempts that fail.
 */
export const TTL_MIN_SECONDS = 300;
