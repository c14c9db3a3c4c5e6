import type { LeaseClaims } from './claims.ts';
import type { LeaseReason } from './reasons.ts';
import { formatTime, parseTime } from './time.ts';

export interface LeaseStatus {
  readonly state: 'valid' | 'grace' | 'expired';
  /** Those of the lease while `valid` and in `grace`, none once `expired`. */
  readonly entitlements: readonly string[];
  /** Why the state is not `valid`, and `null` when it is. */
  readonly reason: Extract<
    LeaseReason,
    'in_grace' | 'not_yet_valid' | 'clock_rollback' | 'expired'
  > | null;
  /**
   * The next time on the clock of this machine at which state or reason will be another, as RFC
   * 3339; `null` when there is none.
   */
  readonly next_change_at: string | null;
}

/** How far the clock of a machine may be behind that of the issuer without any effect. */
export const CLOCK_TOLERANCE_SECONDS = 300;

/**
 * What a verified lease is worth now. Time is never taken to be earlier than the latest time known
 * to have passed: the `issued_at` of this lease, or `knownTime`. With T = the later of that and
 * `now`:
 *
 * | state   | when                                              | reason                           |
 * |---------|---------------------------------------------------|----------------------------------|
 * | expired | T ≥ `grace_ends_at`                               | `expired`                        |
 * | grace   | `now` is over 300 s before the known time         | `not_yet_valid` (before this     |
 * |         |                                                   | issue) or else `clock_rollback`  |
 * | grace   | T ≥ `expires_at`                                  | `in_grace`                       |
 * | valid   | otherwise                                         | `null`                           |
 *
 * A clock that is behind shows as a warning and never stops anything; it is noticed as far back as
 * the known time reaches. A clock that is ahead ends the lease early, until it is set right.
 * The two ends have no tolerance: `expires_at` has the grace period behind it, and `grace_ends_at` is
 * the moment promised to whoever revokes.
 *
 * @param now the clock of this machine, in milliseconds since the Unix epoch.
 * @param knownTime the latest time that is known to have passed, in the form of the claims: one that
 * the issuer signed, or see `knownTime` in `known-time.ts`. What a clock said that people can set does
 * not belong here: one moment with it far ahead would end the lease for good.
 * @throws RangeError when `now` or a time is none: it must not pass for a time before the end.
 */
export function leaseStatus(
  claims: LeaseClaims,
  now: number,
  knownTime: string = claims.issued_at,
): LeaseStatus {
  if (!Number.isFinite(now)) throw new RangeError(`now is ${now}, which is no time`);
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
