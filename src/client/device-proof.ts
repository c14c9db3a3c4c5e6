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
 * The JWT that shows that the holder of the key makes this request: `Authorization: DeviceProof …`.
 * It is good once, and for a minute. A query is no part of it.
 *
 * @param now the clock of this machine, in milliseconds since the Unix epoch.
 * @param nonce of the answer to the request before, where it had one in `Service-Nonce`.
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
 * The JWT by which a device without a network asks for a lease.
 * @param now the clock of this machine, in milliseconds since the Unix epoch.
 */
export function makeOfflineRequest(
  key: DeviceKey,
  asked: Pick<OfflineRequestClaims, 'name' | 'renewal_id' | 'lease' | 'machine_hash'>,
  now: number,
): string {
  const { device_id, x } = key;
  const claims: OfflineRequestClaims = {
    iss: device_id,
    sub: device_id,
    iat: Math.floor(now / 1000),
    jwk: { kty: 'OKP', crv: 'Ed25519', x },
    ...asked,
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
