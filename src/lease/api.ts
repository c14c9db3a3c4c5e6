/**
 * Verifies offline license leases and determines their status. Plain ECMAScript: it runs in Node,
 * browsers and workers.
 *
 * ```ts
 * const lease = verifyLease(text, keys);
 * if (lease.ok) console.log(leaseStatus(lease.claims, Date.now()).state);
 * else console.error(LEASE_REASONS[lease.reason]);
 * ```
 */
export {
  type Binding,
  type LeaseClaims,
  MAX_ENTITLEMENTS,
  MAX_LIFETIME_SECONDS,
} from './claims.ts';
export { encodeEnvelope, leaseToSign, PAYLOAD_TYPE, type Signature } from './envelope.ts';
export {
  importKeyset,
  type PublicKey,
  publicKeyId,
  type PublicKeyset,
  type TrustedKeys,
} from './keys.ts';
export { LEASE_REASONS, type LeaseReason } from './reasons.ts';
export { LeaseError, type Refused } from './refusal.ts';
export {
  KEYSET_TYPE,
  type KeysetClaims,
  keysetToSign,
  ROOT_TYPE,
  type RootClaims,
  rootFingerprint,
  rootToSign,
  type ToSign,
  type TrustedRoot,
  verifyKeyset,
  verifyRoots,
} from './root.ts';
export { CLOCK_TOLERANCE_SECONDS, leaseStatus, type LeaseStatus } from './status.ts';
export { type HeldTrust, type Trust, type TrustOptions, verifyTrust } from './trust.ts';
export { checkLeaseUse, type LeaseUse, machineHash } from './use.ts';
export { verifyLease, type VerifiedLease } from './verify.ts';
