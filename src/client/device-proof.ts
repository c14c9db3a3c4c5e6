import { randomUUID, sign } from 'node:crypto';
import { bodyHash, PROOF_SECONDS, PROOF_TYPE, type ProofClaims } from '../proof-claims.ts';
import type { SentRequest } from './client.ts';
import type { DeviceKey } from './device-key.ts';

/**
 * The JWT that shows that the holder of the key makes this request: `Authorization: DeviceProof …`.
 * It is good once, and for a minute. A query is no part of it.
 *
 * @param now the clock of this machine, in milliseconds since the Unix epoch.
 * @param nonce of the answer to the request before, where it had one in `Service-Nonce`.
 */
export function makeDeviceProof(
  { device_id, privateKey }: DeviceKey,
  { method, url, body }: SentRequest,
  now: number,
  nonce?: string,
): string {
  const { origin, pathname } = new URL(url);
  const iat = Math.floor(now / 1000);
  const claims: ProofClaims = {
    iss: device_id,
    sub: device_id,
    aud: origin,
    iat,
    exp: iat + PROOF_SECONDS,
    jti: randomUUID(),
    htm: method,
    htu: origin + pathname,
    bh: bodyHash(body),
    ...(nonce !== undefined && { nonce }),
  };
  const header = { typ: PROOF_TYPE, alg: 'EdDSA', kid: device_id };
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
