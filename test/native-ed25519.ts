/** Replaces tweetnacl in tests; see `cheap-cryptography.ts`. */
import { createPublicKey, verify } from 'node:crypto';

export default {
  sign: {
    detached: {
      verify(message: Uint8Array, signature: Uint8Array, key: Uint8Array): boolean {
        const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key).toString('base64url') };
        return verify(null, message, createPublicKey({ key: jwk, format: 'jwk' }), signature);
      },
    },
  },
};
