import { readEnvelope } from '../../src/lease/envelope.ts';
import { ROOT_TYPE, rootFingerprint, type KeysetClaims } from '../../src/lease/root.ts';
import { keysetOf, rootOf, testKey, type SigningKey } from '../lease/issuer.ts';

export const ROOT_KEY = testKey(4);
export const FOREIGN_ROOT_KEY = testKey(5);

export const ROOT = rootOf([ROOT_KEY]);
export const FOREIGN_ROOT = rootOf([FOREIGN_ROOT_KEY]);

export function fingerprintOf(root: unknown): string {
  return rootFingerprint(readEnvelope(root, ROOT_TYPE, 'the root').payload);
}

/** Fingerprint of `ROOT`. */
export const PIN = fingerprintOf(ROOT);

/** The keyset document that an issuer with a root publishes. */
export function published(
  keys: readonly SigningKey[],
  change: Partial<KeysetClaims> = {},
  roots: readonly unknown[] = [ROOT],
  by: readonly SigningKey[] = [ROOT_KEY],
): string {
  const jwks = keys.map(({ jwk }) => jwk);
  return JSON.stringify({ keys: jwks, roots, keyset: keysetOf(keys, by, change) });
}
