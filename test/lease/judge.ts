import type { LeaseReason } from '../../src/lease/reasons.ts';
import type { Refused } from '../../src/lease/refusal.ts';
import { leaseStatus } from '../../src/lease/status.ts';
import { type Trust, verifyTrust } from '../../src/lease/trust.ts';
import { checkLeaseUse } from '../../src/lease/use.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import type { Vector } from './make-vectors.ts';

export interface Verdict {
  readonly state: Vector['state'];
  readonly reason: LeaseReason | null;
  readonly detail?: string;
  readonly trust?: Trust;
}

/** Judges a vector from the texts of its files to the state of the lease. */
export function judge({ keyset, pin, held, lease, use, now }: Omit<Vector, 'state'>): Verdict {
  const at = Date.parse(now);
  const before = held === null ? undefined : verifyTrust(held, { now: 0 });
  if (before?.ok === false) return refused(before);
  const trust = verifyTrust(keyset, { pin: pin ?? undefined, held: before, now: at });
  if (!trust.ok) return refused(trust);
  if (lease === null) return { state: 'trusted', reason: null, trust };
  const verified = verifyLease(lease, trust.keys);
  if (!verified.ok) return { ...refused(verified), trust };
  const usable = checkLeaseUse(verified.claims, use);
  if (!usable.ok) return { ...refused(usable), trust };
  const { state, reason } = leaseStatus(verified.claims, at);
  return { state, reason, trust };
}

function refused({ reason, detail }: Refused): Verdict {
  return { state: 'refused', reason, detail };
}
