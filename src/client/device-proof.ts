import { randomUUID, sign } from 'node:crypto';
import {
  bodyHash,
  OFFLINE_REQUEST_TYPE,
  PROOF_SECONDS,
  PROOF_TYPE,
  type OfflineRequestClaims,
  type ProofClaims,
} from '../base/proof-claims.ts';
import type { SentRequest } from './transport.ts';
import type { DeviceKey } from './device-key.ts';

/**
 * Returns the JWT for `Authorization: DeviceProof …`, which proves that the holder of the key sends
 * this request. It is valid once and for `PROOF_SECONDS`. It does not cover the query.
 *
 * @param now milliseconds since the Unix epoch.
 * @param nonce value of `Service-Nonce` in the previous response, if any.
 */
export function makeDeviceProof(
  key: DeviceKey,
  { method, url, body }: SentRequest,
  now: number,
  nonce?: string,
): string {
  const { origin, pathname } = new URL(url);
  const iat = Math.floor(now / 1000);
  const claims: ProofClaims = {
    iss: key.device_id,
    sub: key.device_id,
    aud: origin,
    iat,
    exp: iat + PROOF_SECONDS,
    jti: randomUUID(),
    htm: method,
    htu: origin + pathname,
    bh: bodyHash(body),
    ...(nonce !== undefined && { nonce }),
  };
  return signJwt(key, PROOF_TYPE, claims);
}

/**
 * Returns the JWT with which a device without a network requests a lease.
 * @param now milliseconds since the Unix epoch.
 */
export function makeOfflineRequest(
  key: DeviceKey,
  request: Pick<OfflineRequestClaims, 'name' | 'renewal_id' | 'lease' | 'machine_hash'>,
  now: number,
): string {
  const { device_id, x } = key;
  const claims: OfflineRequestClaims = {
    iss: device_id,
    sub: device_id,
    iat: Math.floor(now / 1000),
    jwk: { kty: 'OKP', crv: 'Ed25519', x },
    ...request,
  };
  return signJwt(key, OFFLINE_REQUEST_TYPE, claims);
}

function signJwt({ device_id, privateKey }: DeviceKey, typ: string, claims: object): string {
  const header = { typ, alg: 'EdDSA', kid: device_id };
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
