import { ServiceError } from '../base/errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { RunningTime } from '../lease/known-time.ts';
import { LEASE_REASONS, type LeaseReason } from '../lease/reasons.ts';
import type { LeaseStatus } from '../lease/status.ts';
import { parseTime } from '../lease/time.ts';
import { byWorth, statusOf, type HeldLease, type RefusedFile } from './license.ts';
import type { MachineTrust } from './machine-trust.ts';

/** Whether a feature may be used now. */
export type Decision =
  | { readonly allowed: true; readonly status: 'valid' | 'grace' | 'not_enforced' }
  | Refusal;

/** Decision against the use of a feature. */
export interface Refusal {
  readonly allowed: false;
  readonly reason: LeaseReason;
  /** The reason as a sentence, without details that only the operator may know, such as paths. */
  readonly detail: string;
}

/** What a gate knows about the lease of this machine. Times are RFC 3339 in UTC. */
export interface GateStatus {
  readonly enforced: boolean;
  /** State of the lease in force; `none` if no lease verified. */
  readonly state: LeaseStatus['state'] | 'none';
  /** Null while the state is `valid`. */
  readonly reason: LeaseReason | null;
  /** The lease in force. */
  readonly lease: LeaseClaims | null;
  readonly entitlements: readonly string[];
  readonly next_change_at: string | null;
  /** Files that are not accepted: the lease file, its backup, the keyset, the trust anchor. */
  readonly refused: readonly RefusedFile[];
  /** Why the keys that verify leases are trusted; `null` while there are none. */
  readonly trust: {
    readonly by: MachineTrust['by'];
    /** Fingerprint of the newest root; `null` for keys without a root. */
    readonly root: string | null;
  } | null;
}

/** Input of a decision. */
export interface Known {
  readonly enforced: boolean;
  readonly leases: readonly HeldLease[];
  readonly refused: readonly RefusedFile[];
  readonly trusted: MachineTrust | undefined;
  /** Running times by lease id. */
  readonly running: ReadonlyMap<string, RunningTime>;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** An immutable decision, which is replaced as a whole. */
export interface Snapshot {
  readonly status: GateStatus;
  readonly entitled: ReadonlySet<string>;
  readonly whenEntitled: Decision;
  readonly whenNot: Decision;
  /** The decision holds from here, ms since the Unix epoch … */
  readonly from: number;
  /** … until here, if the files do not change. */
  readonly until: number;
}

const NOT_ENFORCED: Decision = Object.freeze({ allowed: true, status: 'not_enforced' });

export function decide(known: Known): Snapshot {
  const status = Object.freeze(statusAt(known));
  const { enforced, state, reason, entitlements, next_change_at } = status;
  const works = state === 'valid' || state === 'grace';
  const whenNot = enforced ? refusal(works ? 'entitlement_missing' : reason!) : NOT_ENFORCED;
  return Object.freeze({
    status,
    entitled: new Set(entitlements),
    whenEntitled: enforced && works ? Object.freeze({ allowed: true, status: state }) : whenNot,
    whenNot,
    from: known.now,
    until: next_change_at === null ? Number.POSITIVE_INFINITY : parseTime(next_change_at)!,
  });
}

function statusAt({ enforced, leases, refused, trusted, running, now }: Known): GateStatus {
  const trust = trusted ? { by: trusted.by, root: trusted.fingerprint ?? null } : null;
  const [best] = leases.toSorted(byWorth(now, running));
  if (best !== undefined) {
    const status = statusOf(best, now, running.get(best.claims.lease_id));
    return { enforced, ...status, lease: best.claims, refused, trust };
  }
  const reason = refused[0]?.reason ?? 'missing';
  const nothing = { entitlements: [], next_change_at: null, lease: null };
  return { enforced, state: 'none', reason, ...nothing, refused, trust };
}

function refusal(reason: LeaseReason): Refusal {
  return Object.freeze({ allowed: false, reason, detail: LEASE_REASONS[reason] });
}

const REMEDIES: Readonly<Record<string, string>> = {
  missing:
    'Ask the issuer for an enrollment code, and run `service-local license enroll` on the machine of this program.',
  other_product:
    'Ask the issuer for a lease for this product. The product of a server is its setting license_product.',
  entitlement_missing:
    'Ask the issuer to add the feature to the contract; the next renewal includes it.',
};

/** Returns the error for an operation that needs the feature. */
export function licenseInvalid(feature: string, { reason, detail }: Refusal): ServiceError {
  return new ServiceError('license_invalid', `${feature} is not licensed: ${detail}`, {
    reason,
    remedy: REMEDIES[reason] ?? 'Run `service-local doctor` on the machine of this program.',
  });
}
