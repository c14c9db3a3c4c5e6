import { sha256 } from '@noble/hashes/sha2.js';
import { decodeBase64Url, encodeBase64Url } from './base64.ts';
import { keyFault } from './ed25519.ts';
import { isJsonObject, parseStrictJson, quote } from './json.ts';
import { LeaseError, orRefused, type Refused } from './refusal.ts';
import { encodeUtf8 } from './utf8.ts';

/** A public key that verifies leases, as a JWK (RFC 7517, RFC 8037). */
export interface PublicKey {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  /** The 32 bytes of the key in base64url. */
  readonly x: string;
  /** `publicKeyId(x)`. */
  readonly kid: string;
  /** An `active` key signs; a `retiring` key only verifies leases that it signed before. */
  readonly status?: 'active' | 'retiring';
}

/** A JWK set of the keys that verify leases. */
export interface PublicKeyset {
  readonly keys: readonly PublicKey[];
}

declare const imported: unique symbol;
/** The 32 bytes of each key, by its id. Only `importKeyset` creates it, after checking each key. */
export type TrustedKeys = ReadonlyMap<string, Uint8Array> & { readonly [imported]: true };

/** Returns the id of an Ed25519 key: its JWK thumbprint (RFC 7638) with SHA-256, in base64url. */
export function publicKeyId(x: string): string {
  return encodeBase64Url(
    sha256(encodeUtf8(`{"crv":"Ed25519","kty":"OKP","x":${JSON.stringify(x)}}`)),
  );
}

/**
 * Checks a `PublicKeyset` for `verifyLease`. As RFC 7517 requires, keys of other types and unknown
 * members are ignored; so is a key whose status is neither `active` nor `retiring`, because it is
 * published but not to be trusted.
 *
 * @param keyset JSON text or parsed JSON.
 */
export function importKeyset(
  keyset: unknown,
): { readonly ok: true; readonly keys: TrustedKeys } | Refused {
  return orRefused(() => {
    const value = typeof keyset === 'string' ? parseStrictJson(keyset, 'the keyset') : keyset;
    if (!isJsonObject(value) || !Array.isArray(value['keys'])) {
      throw new LeaseError('invalid_keyset', 'the keyset is not a JSON object with a list "keys"');
    }
    const trusted = new Map<string, Uint8Array>();
    const seen = new Set<string>();
    value['keys'].forEach((key: unknown, index) => {
      const place = `keys[${index}]`;
      if (!isJsonObject(key))
        throw new LeaseError('invalid_keyset', `${place} is not a JSON object`);
      if (Object.hasOwn(key, 'd')) {
        throw new LeaseError('private_key', `${place} contains a private key in its member "d"`);
      }
      if (key['kty'] !== 'OKP' || key['crv'] !== 'Ed25519') return;
      const { id, bytes } = readKey(key, place);
      if (seen.has(id)) throw new LeaseError('invalid_keyset', `${place} repeats an earlier key`);
      seen.add(id);
      if ([undefined, 'active', 'retiring'].includes(key['status'] as string | undefined)) {
        trusted.set(id, bytes);
      }
    });
    if (trusted.size === 0) {
      throw new LeaseError('invalid_keyset', 'the keyset has no active or retiring Ed25519 key');
    }
    return { ok: true, keys: trusted as unknown as TrustedKeys };
  });
}

function readKey(
  { x, kid }: Readonly<Record<string, unknown>>,
  place: string,
): { readonly id: string; readonly bytes: Uint8Array } {
  if (typeof x !== 'string') throw new LeaseError('invalid_keyset', `${place}.x is not a string`);
  const bytes = decodeBase64Url(x);
  if (bytes === undefined) {
    throw new LeaseError('bad_base64', `${place}.x is not base64url without padding`);
  }
  if (bytes.length !== 32) {
    throw new LeaseError('invalid_keyset', `${place}.x has ${bytes.length} bytes instead of 32`);
  }
  const fault = keyFault(bytes);
  if (fault !== undefined) throw new LeaseError(fault, `${place}.x is ${quote(x)}`);
  const id = publicKeyId(x);
  if (kid !== id) throw new LeaseError('key_id_mismatch', `${place}.kid is not ${id}`);
  return { id, bytes };
}
