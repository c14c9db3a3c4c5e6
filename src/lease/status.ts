import type { LeaseClaims } from './claims.ts';
import type { LeaseReason } from './reasons.ts';
import { formatTime, parseTime } from './time.ts';

/** State of a lease at a time, and what it grants then. Times are RFC 3339 in UTC. */
export interface LeaseStatus {
  readonly state: 'valid' | 'grace' | 'expired';
  /** Empty once the lease is `expired`. */
  readonly entitlements: readonly string[];
  /** Null while the state is `valid`. */
  readonly reason: Extract<
    LeaseReason,
    'in_grace' | 'not_yet_valid' | 'clock_rollback' | 'expired'
  > | null;
  /**
   * When state or reason will change next on the clock of this machine (RFC 3339); null for never.
   */
  readonly next_change_at: string | null;
}

/** How far the clock of a machine may lag behind the issuer's clock without effect. */
export const CLOCK_TOLERANCE_SECONDS = 300;

/**
 * Returns the status of a verified lease. The known time is the later of its `issued_at` and
 * `knownTime`; T is the later of the known time and `now`:
 *
 * | state   | when                                              | reason                           |
 * |---------|---------------------------------------------------|----------------------------------|
 * | expired | T ≥ `grace_ends_at`                               | `expired`                        |
 * | grace   | `now` is over 300 s before `issued_at`            | `not_yet_valid`                  |
 * | grace   | `now` is over 300 s before the known time         | `clock_rollback`                 |
 * | grace   | T ≥ `expires_at`                                  | `in_grace`                       |
 * | valid   | otherwise                                         | `null`                           |
 *
 * A clock that is behind only causes a warning. A clock that is ahead ends the lease early until it is
 * corrected. The two ends have no tolerance: the grace period follows `expires_at`, and administrators
 * who revoke a lease rely on `grace_ends_at`.
 *
 * @param now the clock of this machine, in milliseconds since the Unix epoch.
 * @param knownTime a time that has certainly passed, such as one that the issuer signed or that
 * `knownTime` returns. It must not come from a clock that users can set: setting that far ahead once
 * would end the lease for good.
 * @throws RangeError if `now` or a time is invalid, because an invalid time must not extend the lease.
 */
export function leaseStatus(
  claims: LeaseClaims,
  now: number,
  knownTime: string = claims.issued_at,
): LeaseStatus {
  if (!Number.isFinite(now)) throw new RangeError(`now is ${now}, which is not a time`);
  const issued = timeOf(claims.issued_at);
  const expires = timeOf(claims.expires_at);
  const graceEnds = timeOf(claims.grace_ends_at);
  const known = Math.max(issued, timeOf(knownTime));
  const time = Math.max(now, known);
  const tolerance = CLOCK_TOLERANCE_SECONDS * 1000;
  const { entitlements } = claims;

  const inGrace = (reason: LeaseStatus['reason'], next_change_at: string): LeaseStatus => ({
    state: 'grace',
    entitlements,
    reason,
    next_change_at,
  });
  if (time >= graceEnds) {
    return { state: 'expired', entitlements: [], reason: 'expired', next_change_at: null };
  }
  if (now < issued - tolerance) return inGrace('not_yet_valid', formatTime(issued - tolerance));
  if (now < known - tolerance) return inGrace('clock_rollback', formatTime(known - tolerance));
  if (time >= expires) return inGrace('in_grace', claims.grace_ends_at);
  return { state: 'valid', entitlements, reason: null, next_change_at: claims.expires_at };
}

function timeOf(text: string): number {
  const ms = parseTime(text);
  if (ms === undefined) throw new RangeError(`${text} is not a UTC time in whole seconds`);
  return ms;
}
