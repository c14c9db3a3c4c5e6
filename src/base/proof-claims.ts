import { createHash } from 'node:crypto';

/** `typ` of the JWT that proves a device's request, so that no other JWT is accepted as proof. */
export const PROOF_TYPE = 'service-local-device-proof+jwt';

/** Maximum validity of a proof. */
export const PROOF_SECONDS = 60;

/**
 * Claims of the proof of a request: those of DPoP (RFC 9449), with the device as issuer and the hash
 * of the body. Header: `typ` as above, `alg` `EdDSA`, `kid` the device's id.
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
  readonly htm: string;
  /** URL of the request without its query. */
  readonly htu: string;
  /** `bodyHash` of the request. */
  readonly bh: string;
  /** From the server, for a device whose clock is wrong; replaces the check of the times. */
  readonly nonce?: string;
}

/** SHA-256 in base64url. */
export function bodyHash(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64url');
}

/**
 * Signed instead of the body by the next key of a device, whose signature is itself in the body: the
 * id of the key that it replaces.
 */
export function successionBody(deviceId: string): Uint8Array {
  return Buffer.from(deviceId);
}

/** `typ` of the JWT with which a device without a network requests a lease. */
export const OFFLINE_REQUEST_TYPE = 'service-local-offline-request+jwt';

/**
 * Claims of an offline request. It does not expire, because people carry it to an administrator and
 * bring the lease back; `renewal_id` makes repeated requests idempotent. Header as of a proof,
 * except for `typ`.
 */
export interface OfflineRequestClaims {
  /** The device's id: the RFC 7638 thumbprint of its public key. */
  readonly iss: string;
  readonly sub: string;
  /** Seconds since the Unix epoch, by the clock of the device. */
  readonly iat: number;
  /** The public key: the server may not know it yet. */
  readonly jwk: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string };
  readonly name: string;
  readonly renewal_id: string;
  /** Content of the lease file; absent if the device has no lease. */
  readonly lease?: unknown;
  /** `machineHash` of the machine; absent if its id cannot be read. */
  readonly machine_hash?: string | undefined;
}
