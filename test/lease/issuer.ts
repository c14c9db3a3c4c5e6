import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import {
  encodeEnvelope,
  leaseToSign,
  PAYLOAD_TYPE,
  preAuthEncoding,
  type Signature,
} from '../../src/lease/envelope.ts';
import {
  importKeyset,
  type PublicKey,
  publicKeyId,
  type TrustedKeys,
} from '../../src/lease/keys.ts';
import {
  KEYSET_TYPE,
  keysetToSign,
  ROOT_TYPE,
  rootToSign,
  type KeysetClaims,
  type RootClaims,
  type ToSign,
} from '../../src/lease/root.ts';
import { formatTime } from '../../src/lease/time.ts';

/** The issuing side, on the cryptography of Node. */
export interface SigningKey {
  readonly jwk: PublicKey;
  readonly bytes: Uint8Array;
  readonly sign: (message: Uint8Array) => Uint8Array;
}

const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

export function signingKey(secret: Uint8Array): SigningKey {
  const key = Buffer.concat([PKCS8_PREFIX, secret]);
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  const x = createPublicKey(privateKey).export({ format: 'jwk' }).x!;
  return {
    jwk: { kty: 'OKP', crv: 'Ed25519', x, kid: publicKeyId(x) },
    bytes: new Uint8Array(Buffer.from(x, 'base64url')),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}

/** A key that anybody can have: the secret is 32 times the same byte. */
export const testKey = (byte: number): SigningKey => signingKey(new Uint8Array(32).fill(byte));

/** A public key for the cryptography of Node, from bytes that it does not look at. */
export function nodeKey(bytes: Uint8Array): KeyObject {
  const x = Buffer.from(bytes).toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

export function trust(...keys: readonly PublicKey[]): TrustedKeys {
  const result = importKeyset({ keys });
  if (!result.ok) throw new Error(result.detail);
  return result.keys;
}

const DAY = 86_400;
const ISSUED = Date.UTC(2026, 0, 5, 9, 30);

/** Claims of seven days and three of grace, unless `change` says otherwise, that add up. */
export function claimsOf(key: SigningKey, change: Partial<LeaseClaims> = {}): LeaseClaims {
  const { ttl_seconds: ttl = 7 * DAY, grace_period_seconds: grace = 3 * DAY } = change;
  const issued = change.issued_at === undefined ? ISSUED : Date.parse(change.issued_at);
  return {
    lease_id: 'lease-1',
    deployment_id: 'deployment-1',
    customer_id: 'customer-1',
    entitlements: ['live_trading', 'kb_federation'],
    issued_at: formatTime(issued),
    expires_at: formatTime(issued + ttl * 1000),
    grace_ends_at: formatTime(issued + (ttl + grace) * 1000),
    ttl_seconds: ttl,
    grace_period_seconds: grace,
    public_key_id: key.jwk.kid,
    issuer: 'https://licenses.example',
    ...change,
  };
}

/** A lease with these claims, signed by each of the keys. */
export function issue(claims: LeaseClaims, ...keys: readonly SigningKey[]): string {
  const { payload, toSign } = leaseToSign(claims);
  return encodeEnvelope(
    payload,
    keys.map((key) => signatureBy(key, toSign)),
  );
}

/** A lease file as plain JSON. */
export interface LeaseFile {
  readonly payloadType: string;
  readonly payload: string;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/** A lease as a faulty issuer would make it: whatever the payload says, it is signed. */
export function seal(payload: string | Uint8Array, key: SigningKey): string {
  const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
  return encodeEnvelope(bytes, [signatureBy(key, preAuthEncoding(PAYLOAD_TYPE, bytes))]);
}

function signatureBy(key: SigningKey, message: Uint8Array): Signature {
  return { keyid: key.jwk.kid, bytes: key.sign(message) };
}

const TIMES = { issued_at: '2026-01-05T09:30:00Z', expires_at: '2027-01-05T09:30:00Z' };

/** The envelope of a root with these keys, any one of which may sign, unless `change` says otherwise. */
export function rootOf(
  keys: readonly SigningKey[],
  { by = keys, ...change }: Partial<RootClaims> & { readonly by?: readonly SigningKey[] } = {},
): unknown {
  const claims: RootClaims = {
    version: 1,
    issuer: 'https://licenses.example',
    ...TIMES,
    threshold: 1,
    keys: keys.map(({ jwk }) => jwk),
    ...change,
  };
  return sealed(rootToSign(claims), ROOT_TYPE, by);
}

/** The envelope of a keyset of these keys. */
export function keysetOf(
  keys: readonly SigningKey[],
  by: readonly SigningKey[],
  change: Partial<KeysetClaims> = {},
): unknown {
  const claims: KeysetClaims = {
    version: 1,
    issuer: 'https://licenses.example',
    ...TIMES,
    keys: keys.map(({ jwk }) => jwk),
    retired: [],
    ...change,
  };
  return sealed(keysetToSign(claims), KEYSET_TYPE, by);
}

function sealed({ payload, toSign }: ToSign, type: string, by: readonly SigningKey[]): unknown {
  const signatures = by.map((key) => signatureBy(key, toSign));
  return JSON.parse(encodeEnvelope(payload, signatures, type));
}
