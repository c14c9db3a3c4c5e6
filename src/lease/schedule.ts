import { sha256 } from '@noble/hashes/sha2.js';
import type { LeaseClaims } from './claims.ts';
import { parseTime } from './time.ts';
import { encodeUtf8 } from './utf8.ts';

/** Nothing is renewed with more than this left, however long it lasts. */
export const LONGEST_REST_MS = 24 * 3_600_000;

/**
 * How long before its end a lease of this TTL is renewed at the earliest: a day, or a third of a
 * short TTL, so that no lease is due for renewal as soon as it is issued.
 */
export function renewalRestMs(ttlMs: number): number {
  return Math.min(LONGEST_REST_MS, ttlMs / 3);
}

/**
 * When a lease is due for renewal, in milliseconds since the Unix epoch: within the first quarter of
 * the rest, at a moment that is fixed by installation and lease, so that a fleet whose leases were
 * issued in one minute renews them over hours, and that everybody can tell when.
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
