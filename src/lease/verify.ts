import { type LeaseClaims, readClaims } from './claims.ts';
import { signatureFault } from './ed25519.ts';
import { parseEnvelope, PAYLOAD_TYPE, preAuthEncoding } from './envelope.ts';
import { quote } from './json.ts';
import type { TrustedKeys } from './keys.ts';
import { LeaseError, orRefused, type Refused } from './refusal.ts';

export interface VerifiedLease {
  readonly ok: true;
  readonly claims: LeaseClaims;
  /** The key that signed, which is also `claims.public_key_id`. */
  readonly keyId: string;
}

/**
 * Whether a lease was issued by the holder of one of the keys, and what it says: the very bytes that
 * verified are read, once, and nothing of the envelope around them counts. Says nothing about time,
 * see `leaseStatus`. Never throws, whatever the text.
 *
 * Of several signatures, those by keys that are not among `keys` are skipped; all the others must
 * verify, and the key that the claims name must be one of theirs.
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
        `public_key_id is ${keyId}, signed by ${signers.join()}`,
      );
    }
    return { ok: true, claims, keyId };
  });
}
