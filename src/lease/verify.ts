import { type LeaseClaims, readClaims } from './claims.ts';
import { signatureFault } from './ed25519.ts';
import { parseEnvelope, PAYLOAD_TYPE, preAuthEncoding } from './envelope.ts';
import { quote } from './json.ts';
import type { TrustedKeys } from './keys.ts';
import { LeaseError, orRefused, type Refused } from './refusal.ts';

/** A lease whose signature is valid. */
export interface VerifiedLease {
  readonly ok: true;
  readonly claims: LeaseClaims;
  /** Id of the signing key; equal to `claims.public_key_id`. */
  readonly keyId: string;
}

/**
 * Verifies that a lease was signed by one of the keys, and returns the claims in the signed bytes. Does
 * not check time, see `leaseStatus`. Never throws.
 *
 * Signatures by unknown keys are skipped; all others must verify, and one of them must be by the key
 * that the claims name.
 *
 * @param text the content of a lease file.
 */
export function verifyLease(text: string, keys: TrustedKeys): VerifiedLease | Refused {
  return orRefused(() => {
    const { payload, signatures } = parseEnvelope(text);
    const signed = preAuthEncoding(PAYLOAD_TYPE, payload);
    const signers: string[] = [];
    for (const { keyid, bytes } of signatures) {
      const key = keys.get(keyid);
      if (key === undefined) continue;
      const fault = signatureFault(signed, bytes, key);
      if (fault !== undefined) throw new LeaseError(fault, `the signature by ${keyid}`);
      signers.push(keyid);
    }
    if (signers.length === 0) {
      const named = signatures.map(({ keyid }) => quote(keyid)).join(', ');
      throw new LeaseError('unknown_key', `the keyset has no key ${named}`);
    }
    const claims = readClaims(payload);
    const keyId = claims.public_key_id;
    if (!signers.includes(keyId)) {
      throw new LeaseError(
        'key_mismatch',
        `public_key_id is ${keyId}, but the lease is signed by ${signers.join()}`,
      );
    }
    return { ok: true, claims, keyId };
  });
}
