import { ServiceError } from '../base/errors.ts';
import { formatTime } from '../lease/time.ts';
import type { LeasePurpose } from './binding.ts';
import type { LeasePolicy } from './context.ts';
import { entitlementSet } from './registry.ts';

export interface InstallationTerms extends LeasePurpose {
  readonly deployment_id: string;
  readonly customer_id: string;
  readonly contract_id: string;
  readonly contract_ends_at: number;
  readonly entitlements: readonly string[];
  /** From the contract, otherwise from the plan; null if neither sets it. */
  readonly ttl_seconds: number | null;
  readonly grace_period_seconds: number | null;
}

/** Terms that an administrator may request. */
export interface RequestedTerms {
  readonly entitlements?: readonly string[] | undefined;
  readonly ttl_seconds?: number | undefined;
  readonly grace_period_seconds?: number | undefined;
  /** Maximum TTL of the administrator's token. */
  readonly ttl_max_seconds?: number | undefined;
}

/** Terms of a lease. Times are milliseconds since the Unix epoch, in whole seconds. */
export interface Terms {
  readonly entitlements: readonly string[];
  readonly issued_at: number;
  readonly expires_at: number;
  readonly grace_ends_at: number;
  readonly ttl_seconds: number;
  readonly grace_period_seconds: number;
  /** Periods that were shortened, with the reason. */
  readonly limits: readonly Limit[];
}

export interface Limit {
  readonly field: 'ttl_seconds' | 'grace_period_seconds';
  readonly wanted: number;
  readonly granted: number;
  readonly because: 'contract_end' | 'token_maximum' | 'server_maximum';
}

/** Order of precedence: the first of several equal limits is named. */
const BECAUSE = ['contract_end', 'token_maximum', 'server_maximum'] as const;

/**
 * Determines the terms of a lease that is issued now. TTL and grace period together end with the
 * contract at the latest; the TTL has precedence.
 *
 * @throws ServiceError `contract_ended`; `not_allowed` for an entitlement that neither plan nor
 * contract includes.
 */
export function leaseTerms(
  policy: LeasePolicy,
  registered: InstallationTerms,
  requested: RequestedTerms,
  now: number,
): Terms {
  const issued = Math.floor(now / 1000) * 1000;
  const left = Math.floor((registered.contract_ends_at - issued) / 1000);
  if (left < 1 || registered.contract_ends_at <= now) {
    const date = formatTime(registered.contract_ends_at);
    throw new ServiceError(
      'contract_ended',
      `the contract ${registered.contract_id} ended on ${date}`,
      { remedy: 'Extend it with `service-local identity contracts update`.' },
    );
  }
  const limits: Limit[] = [];
  const bounded = (
    field: Limit['field'],
    wanted: number,
    bounds: Readonly<Partial<Record<Limit['because'], number>>>,
  ): number => {
    const granted = Math.min(wanted, ...Object.values(bounds));
    if (granted < wanted) {
      const because = BECAUSE.find((one) => bounds[one] === granted)!;
      limits.push({ field, wanted, granted, because });
    }
    return granted;
  };
  const ttl = bounded(
    'ttl_seconds',
    requested.ttl_seconds ?? registered.ttl_seconds ?? policy.ttl_seconds,
    {
      contract_end: left,
      token_maximum: requested.ttl_max_seconds ?? Infinity,
      server_maximum: policy.ttl_max_seconds,
    },
  );
  const grace = bounded(
    'grace_period_seconds',
    requested.grace_period_seconds ??
      registered.grace_period_seconds ??
      policy.grace_period_seconds,
    { contract_end: left - ttl, server_maximum: policy.grace_period_max_seconds },
  );
  return {
    entitlements: entitlementsOf(registered, requested),
    issued_at: issued,
    expires_at: issued + ttl * 1000,
    grace_ends_at: issued + (ttl + grace) * 1000,
    ttl_seconds: ttl,
    grace_period_seconds: grace,
    limits,
  };
}

function entitlementsOf(
  registered: InstallationTerms,
  requested: RequestedTerms,
): readonly string[] {
  const { entitlements: wanted = registered.entitlements } = requested;
  const beyond = wanted.filter((name) => !registered.entitlements.includes(name));
  if (beyond.length > 0) {
    const has = registered.entitlements.join(', ') || 'nothing';
    throw new ServiceError(
      'not_allowed',
      `the contract ${registered.contract_id} does not include ${beyond.join(', ')}; it includes ${has}`,
      {
        reason: 'entitlement_not_in_contract',
        remedy:
          'Request other entitlements, or change the contract with `service-local identity contracts update`.',
      },
    );
  }
  return entitlementSet(wanted);
}
