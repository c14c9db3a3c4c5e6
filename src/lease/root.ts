/**
 * The trust root determines which keys may sign leases. An issuer keeps root keys offline; they
 * sign the root document, which names them, and the keyset, which names the keys that sign leases.
 * The rules follow The Update Framework
 * (https://theupdateframework.github.io/specification/latest/): versions only rise, and a new root
 * is signed by a threshold of the former root and of its own keys.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { encodeBase64Url } from './base64.ts';
import { isId, isDigest } from './claims.ts';
import { signatureFault } from './ed25519.ts';
import { type Envelope, preAuthEncoding, readEnvelope } from './envelope.ts';
import { canonicalJson, isJsonObject, parseStrictJson } from './json.ts';
import { importKeyset, type PublicKey, type TrustedKeys } from './keys.ts';
import { LeaseError, orRefused, type Refused } from './refusal.ts';
import { isTime } from './time.ts';
import { decodeUtf8, encodeUtf8 } from './utf8.ts';

/** Payload type of a signed root. */
export const ROOT_TYPE = 'application/vnd.service-local.license-root.v1+json';
/** Payload type of a signed keyset. */
export const KEYSET_TYPE = 'application/vnd.service-local.license-keyset.v1+json';

/** A new root is signed by its own keys and by the keys of the previous root. */
const MAX_SIGNATURES = 16;

/** Claims of both documents. Times are RFC 3339 in UTC and whole seconds. */
interface Document {
  /** Starts at 1; each new document has a higher version. */
  readonly version: number;
  readonly issuer: string;
  readonly issued_at: string;
  /** An expired document adds no keys, but the keys that are already trusted still verify. */
  readonly expires_at: string;
}

/** Claims of a root. Times are RFC 3339 in UTC and whole seconds. */
export interface RootClaims extends Document {
  /** How many of `keys` must sign a keyset or the next root; at least 1. */
  readonly threshold: number;
  readonly keys: readonly PublicKey[];
}

/** Claims of a keyset. Times are RFC 3339 in UTC and whole seconds. */
export interface KeysetClaims extends Document {
  /** Fingerprint of the root that signs the keyset; absent without a root. */
  readonly root?: string;
  /** The keys that verify leases. */
  readonly keys: readonly PublicKey[];
  /** Ids of keys that must not be trusted again. */
  readonly retired: readonly string[];
}

/** The newest root of a chain whose signatures were verified. */
export interface TrustedRoot {
  readonly claims: RootClaims;
  readonly keys: TrustedKeys;
  /** Fingerprints of the roots that lead to this one, oldest first; the last is its own. */
  readonly lineage: readonly string[];
}

/** The keys that may sign a document, and how many of them must. */
export interface Signers {
  readonly keys: TrustedKeys;
  readonly threshold: number;
}

export interface VerifiedKeyset {
  readonly ok: true;
  readonly claims: KeysetClaims;
  readonly keys: TrustedKeys;
}

/**
 * Returns the bytes that the root keys sign for a new root (`toSign`), and the `payload` for the
 * envelope.
 *
 * @throws LeaseError for claims that `verifyRoots` would refuse.
 */
export function rootToSign(claims: RootClaims): ToSign {
  checkRoot(claims);
  return toSign(claims, ROOT_TYPE);
}

/**
 * Returns the bytes that the signers sign for a keyset (`toSign`), and the `payload` for the
 * envelope.
 *
 * @throws LeaseError for claims that `verifyKeyset` would refuse.
 */
export function keysetToSign(claims: KeysetClaims): ToSign {
  checkKeyset(claims);
  return toSign(claims, KEYSET_TYPE);
}

/** The payload of a document, and the bytes to sign for it. */
export interface ToSign {
  readonly payload: Uint8Array;
  readonly toSign: Uint8Array;
}

/** Identifies a root: SHA-256 of its signed payload, 43 base64url characters. */
export function rootFingerprint(payload: Uint8Array): string {
  return encodeBase64Url(sha256(payload));
}

/**
 * Verifies a chain of roots, oldest first, and returns the newest. Does not check expiry.
 *
 * @param roots the list of envelopes, as parsed JSON.
 * @param pin fingerprint of the root to begin with; roots before it do not count.
 */
export function verifyRoots(
  roots: unknown,
  pin?: string,
): { readonly ok: true; readonly root: TrustedRoot } | Refused {
  return orRefused(() => {
    if (!Array.isArray(roots) || roots.length === 0) {
      throw new LeaseError('invalid_root', 'the roots must be a non-empty list');
    }
    const envelopes = roots.map((item: unknown, index) =>
      readEnvelope(item, ROOT_TYPE, `roots[${index}]`, MAX_SIGNATURES),
    );
    const first =
      pin === undefined
        ? 0
        : envelopes.findIndex(({ payload }) => rootFingerprint(payload) === pin);
    if (first === -1) throw new LeaseError('other_root', `none of the roots is ${pin}`);
    let root: TrustedRoot | undefined;
    envelopes.slice(first).forEach((envelope, index) => {
      root = nextRoot(root, envelope, `roots[${first + index}]`);
    });
    return { ok: true, root: root! };
  });
}

/**
 * Verifies the signatures of a keyset. Does not check expiry.
 *
 * @param keyset the envelope, as parsed JSON.
 */
export function verifyKeyset(keyset: unknown, signers: Signers): VerifiedKeyset | Refused {
  return orRefused(() => {
    const envelope = readEnvelope(keyset, KEYSET_TYPE, 'the keyset', MAX_SIGNATURES);
    checkSignatures(envelope, KEYSET_TYPE, signers, 'the keyset');
    const claims = readPayload(envelope, 'the keyset');
    const keys = checkKeyset(claims);
    return { ok: true, claims: claims as unknown as KeysetClaims, keys };
  });
}

function nextRoot(before: TrustedRoot | undefined, envelope: Envelope, what: string): TrustedRoot {
  const document = readPayload(envelope, what);
  const keys = checkRoot(document, what);
  const claims = document as unknown as RootClaims;
  const { version, issuer, threshold } = claims;
  checkSignatures(envelope, ROOT_TYPE, { keys, threshold }, what);
  if (before !== undefined) {
    const former = before.claims;
    if (version !== former.version + 1) {
      throw new LeaseError(
        'root_rollback',
        `${what} has version ${version}, not ${former.version + 1}`,
      );
    }
    if (issuer !== former.issuer) throw new LeaseError('other_issuer', `${what} is of ${issuer}`);
    checkSignatures(envelope, ROOT_TYPE, { keys: before.keys, threshold: former.threshold }, what);
  }
  const lineage = [...(before?.lineage ?? []), rootFingerprint(envelope.payload)];
  return { claims, keys, lineage };
}

/**
 * Requires signatures by at least `threshold` of the keys; any invalid signature by one of them is
 * an error.
 */
function checkSignatures(
  { payload, signatures }: Envelope,
  type: string,
  { keys, threshold }: Signers,
  what: string,
): void {
  const signed = preAuthEncoding(type, payload);
  let count = 0;
  for (const { keyid, bytes } of signatures) {
    const key = keys.get(keyid);
    if (key === undefined) continue;
    const fault = signatureFault(signed, bytes, key);
    if (fault !== undefined) throw new LeaseError(fault, `the signature of ${what} by ${keyid}`);
    count += 1;
  }
  if (count < threshold) {
    throw new LeaseError(
      'not_vouched_for',
      `${what} has ${count} of ${threshold} signatures needed`,
    );
  }
}

function readPayload({ payload }: Envelope, what: string): Readonly<Record<string, unknown>> {
  const text = decodeUtf8(payload);
  if (text === undefined) throw new LeaseError('not_utf8', `the payload of ${what} is not UTF-8`);
  const document = parseStrictJson(text, `the payload of ${what}`);
  if (!isJsonObject(document)) {
    throw new LeaseError('invalid_root', `the payload of ${what} is not a JSON object`);
  }
  return document;
}

function checkRoot(claims: object, what = 'the root'): TrustedKeys {
  checkDocument(claims, what);
  const { threshold, keys } = claims as RootClaims;
  const trusted = keysOf(keys);
  if (!Number.isSafeInteger(threshold) || threshold < 1 || threshold > trusted.size) {
    throw new LeaseError('invalid_root', `${what}.threshold must be from 1 to ${trusted.size}`);
  }
  return trusted;
}

function checkKeyset(claims: object): TrustedKeys {
  checkDocument(claims, 'the keyset');
  const { root, keys, retired } = claims as KeysetClaims;
  if (root !== undefined && !isDigest(root)) {
    throw new LeaseError('invalid_root', 'root in the keyset is not a fingerprint');
  }
  const trusted = keysOf(keys);
  if (!Array.isArray(retired) || !retired.every((id) => isId(id))) {
    throw new LeaseError('invalid_root', 'retired in the keyset must be a list of key ids');
  }
  const both = retired.find((id) => trusted.has(id));
  if (both !== undefined) {
    throw new LeaseError(
      'invalid_root',
      `the keyset lists key ${both} both as retired and as in use`,
    );
  }
  return trusted;
}

function keysOf(keys: unknown): TrustedKeys {
  const imported = importKeyset({ keys });
  if (!imported.ok) throw new LeaseError(imported.reason, imported.detail);
  return imported.keys;
}

function checkDocument(claims: object, what: string): void {
  const { version, issuer, issued_at, expires_at } = claims as Document;
  const fail = (detail: string): never => {
    throw new LeaseError('invalid_root', `${what}.${detail}`);
  };
  if (!Number.isSafeInteger(version) || version < 1) {
    fail('version is not a whole number of at least 1');
  }
  if (!isId(issuer)) fail('issuer is not 1 to 128 visible ASCII characters');
  for (const [name, value] of Object.entries({ issued_at, expires_at })) {
    if (!isTime(value)) fail(`${name} is not a UTC time in whole seconds`);
  }
  // Times of this form sort as texts.
  if (expires_at <= issued_at) fail('expires_at is not after issued_at');
}

function toSign(claims: Document, type: string): ToSign {
  const payload = encodeUtf8(canonicalJson(claims));
  return { payload, toSign: preAuthEncoding(type, payload) };
}
