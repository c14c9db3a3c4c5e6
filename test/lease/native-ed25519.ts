/**
 * Replaces tweetnacl in all tests outside this directory (see `vitest.config.ts`), because it verifies
 * in a fiftieth of the time. The tests of this directory check that tweetnacl gives the same results.
 * Processes that tests start use tweetnacl itself.
 */
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
