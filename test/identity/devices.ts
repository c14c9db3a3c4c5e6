import { sign } from 'node:crypto';
import type { DeviceKey } from '../../src/client/device-key.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import type { ProvenRequest } from '../../src/identity/device-proof.ts';
import { createEnrollmentCode, enrollDevice } from '../../src/identity/enrollment.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { bodyHash, PROOF_TYPE, type ProofClaims } from '../../src/base/proof-claims.ts';
import type { Storage } from '../../src/storage/storage.ts';
import type { SigningKey } from '../lease/issuer.ts';
import { newWorld, type World } from './people.ts';

export const ORIGIN = 'https://licenses.example';
export const INSTALLATIONS = ['tokyo', 'osaka'] as const;

export async function newVendor(kind: Storage['kind']): Promise<World> {
  const world = await newWorld(kind);
  const { identity } = world;
  await createCustomer(identity, 'server', { customer_id: 'acme', name: 'Acme' });
  await createPlan(identity, 'server', { plan_id: 'pro', name: 'Pro' });
  await createContract(identity, 'server', {
    contract_id: 'acme-pro',
    customer_id: 'acme',
    plan_id: 'pro',
    ends_at: Date.UTC(2030, 0),
  });
  for (const deployment_id of INSTALLATIONS) {
    const installation = { deployment_id, contract_id: 'acme-pro', name: deployment_id };
    await createInstallation(identity, 'server', installation);
  }
  return world;
}

export function requestOf(body = '{"a":1}', path = '/auth/license/leases'): ProvenRequest {
  return { method: 'POST', url: `${ORIGIN}${path}?q=1`, body: Buffer.from(body) };
}

let made = 0;

/** Claims of a valid proof, at `now` by the clock of the device. */
export function claimsFor(
  key: SigningKey,
  request: ProvenRequest,
  now: number,
  change: Record<string, unknown> = {},
): Record<string, unknown> {
  const iat = Math.floor(now / 1000);
  made += 1;
  const claims: ProofClaims = {
    iss: key.jwk.kid,
    sub: key.jwk.kid,
    aud: ORIGIN,
    iat,
    exp: iat + 60,
    jti: `0198c0de-0000-7000-8000-${String(made).padStart(12, '0')}`,
    htm: request.method,
    htu: request.url.replace(/\?.*/, ''),
    bh: bodyHash(request.body),
  };
  return { ...claims, ...change };
}

/** Signs any header and claims; strings are used unchanged. */
export function seal(
  key: SigningKey,
  claims: Readonly<Record<string, unknown>> | string,
  header: Readonly<Record<string, unknown>> | string = {},
): string {
  const usual = { typ: PROOF_TYPE, alg: 'EdDSA', kid: key.jwk.kid };
  const parts = [typeof header === 'string' ? header : { ...usual, ...header }, claims];
  const signed = parts
    .map((part) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)))
    .map((bytes) => bytes.toString('base64url'))
    .join('.');
  return `${signed}.${Buffer.from(key.sign(Buffer.from(signed))).toString('base64url')}`;
}

export async function enrolled(
  { identity, now }: World,
  key: SigningKey,
  installationId: string,
): Promise<void> {
  const { code } = await createEnrollmentCode(identity, 'operator', installationId);
  const request = requestOf(code, '/auth/license/devices');
  const proof = seal(key, claimsFor(key, request, now));
  const device = { code, x: key.jwk.x, name: 'host-1' };
  await enrollDevice(identity, device, proof, request, [ORIGIN]);
}

export function signerOf({ device_id, x, privateKey }: DeviceKey): SigningKey {
  return {
    jwk: { kty: 'OKP', crv: 'Ed25519', x, kid: device_id },
    bytes: Buffer.from(x, 'base64url'),
    sign: (message) => sign(null, message, privateKey),
  };
}
