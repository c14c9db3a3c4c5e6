import { createHash } from 'node:crypto';

/** `typ` of the JWT with which a device signs a request, so that no other JWT passes for it. */
export const PROOF_TYPE = 'service-local-device-proof+jwt';

/** The longest that a proof may be good for. */
export const PROOF_SECONDS = 60;

/**
 * What a device says with the proof of a request (the claims of DPoP, RFC 9449, with the device as
 * issuer and the hash of the body). Header: `typ` as above, `alg` `EdDSA`, `kid` the device's id.
 */
export interface ProofClaims {
  /** The device's id: the RFC 7638 thumbprint of its public key. */
  readonly iss: string;
  readonly sub: string;
  /** Origin of the server. */
  readonly aud: string;
  /** Seconds since the Unix epoch. */
  readonly iat: number;
  /** At most `PROOF_SECONDS` after `iat`. */
  readonly exp: number;
  /** A UUID, used once. */
  readonly jti: string;
  /** Method of the request. */
  readonly htm: string;
  /** URL of the request without its query. */
  readonly htu: string;
  /** `bodyHash` of the request. */
  readonly bh: string;
  /** What the server gave to a device whose clock is wrong; it then counts instead of the times. */
  readonly nonce?: string;
}

/** SHA-256 in base64url. */
export function bodyHash(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64url');
}

/**
 * What stands for the body in the proof by a device's next key, which is itself in the body: the id
 * of the key whose place it takes.
 */
export function successionBody(deviceId: string): Uint8Array {
  return Buffer.from(deviceId);
}

/** `typ` of the JWT by which a device without a network asks for a lease. */
export const OFFLINE_REQUEST_TYPE = 'service-local-offline-request+jwt';

/**
 * What it says. Somebody carries it to an administrator, and the lease back, so it has no end; asking
 * again is a matter of its `renewal_id`. Header as that of a proof, but for `typ`.
 */
export interface OfflineRequestClaims {
  /** The device's id: the RFC 7638 thumbprint of its public key. */
  readonly iss: string;
  readonly sub: string;
  /** Seconds since the Unix epoch, by the clock of the device. */
  readonly iat: number;
  /** The public key: the server may not know it yet. */
  readonly jwk: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string };
  /** What people call the device. */
  readonly name: string;
  readonly renewal_id: string;
  /** The lease that the device holds, the content of its file; absent when it holds none. */
  readonly lease?: unknown;
  /** `machineHash` of the machine; absent where its id cannot be read. */
  readonly machine_hash?: string | undefined;
}
