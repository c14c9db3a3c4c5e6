import { sha256 } from '@noble/hashes/sha2.js';
import type { LeaseClaims } from './claims.ts';
import { parseTime } from './time.ts';
import { encodeUtf8 } from './utf8.ts';

/** Maximum remaining time at renewal, for leases of any TTL. */
export const LONGEST_REST_MS = 24 * 3_600_000;

/**
 * Returns the remaining time at which a lease may be renewed: one day, or a third of the TTL if that is
 * shorter. A new lease is therefore never due at once.
 */
export function renewalRestMs(ttlMs: number): number {
  return Math.min(LONGEST_REST_MS, ttlMs / 3);
}

/**
 * Returns when a lease is due for renewal, in milliseconds since the Unix epoch. The time is within the
 * first quarter of `renewalRestMs` and derived from the ids of installation and lease, so that a fleet
 * whose leases were issued together renews them over hours, at times that can be predicted.
 */
export function renewalMoment(
  claims: Pick<LeaseClaims, 'deployment_id' | 'lease_id' | 'expires_at' | 'ttl_seconds'>,
): number {
  const expires = parseTime(claims.expires_at)!;
  const rest = renewalRestMs(claims.ttl_seconds * 1000);
  const digest = sha256(encodeUtf8(`renew\n${claims.deployment_id}\n${claims.lease_id}`));
  const share = new DataView(digest.buffer, digest.byteOffset).getUint32(0) / 2 ** 32;
  return Math.round(expires - rest + (share * rest) / 4);
}
