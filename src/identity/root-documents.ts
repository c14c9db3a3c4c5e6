/**
 * Creates the documents of a trust root: roots, signed keysets, and signatures that several key holders
 * add one after another. See `src/lease/root.ts` for the rules of verifiers. Performs no I/O.
 */
import { ServiceError } from '../base/errors.ts';
import { decodeBase64 } from '../lease/base64.ts';
import { encodeEnvelope, preAuthEncoding } from '../lease/envelope.ts';
import { isJsonObject, parseStrictJson } from '../lease/json.ts';
import { importKeyset, type PublicKey } from '../lease/keys.ts';
import { LeaseError } from '../lease/refusal.ts';
import {
  KEYSET_TYPE,
  type KeysetClaims,
  keysetToSign,
  ROOT_TYPE,
  type RootClaims,
  rootFingerprint,
  rootToSign,
} from '../lease/root.ts';
import { formatTime } from '../lease/time.ts';
import { decodeUtf8 } from '../lease/utf8.ts';
import type { Signer } from './signing-key.ts';

export interface SignedDocument {
  readonly payloadType: string;
  readonly payload: string;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/** The file that goes from one key holder to the next and, once complete, to the server. */
export interface TrustDocument {
  /** The chain of roots, oldest first. */
  readonly roots: readonly SignedDocument[];
  readonly keyset?: SignedDocument | undefined;
}

/** Count of present and required signatures of one group of signers. */
export interface SignatureCount {
  readonly by: 'root' | 'former_root';
  readonly count: number;
  readonly threshold: number;
}

/**
 * Parses a trust document without verifying its signatures, which may be incomplete.
 *
 * @param name of the file, for errors.
 * @throws ServiceError `invalid_data`
 */
export function readTrustDocument(text: string, name: string): TrustDocument {
  const value = refusing(() => parseStrictJson(text, name));
  const { roots, keyset } = isJsonObject(value) ? value : {};
  if (!Array.isArray(roots) || roots.length === 0) {
    throw invalid(`${name}: /roots must be a list with at least one root`);
  }
  const document = { roots: roots as SignedDocument[], keyset: keyset as SignedDocument };
  document.roots.forEach((root, index) => claimsOf(root, `${name}: roots[${index}]`));
  if (keyset !== undefined) claimsOf(document.keyset, `${name}: the keyset`);
  return document;
}

export function rootClaims({ roots }: TrustDocument): RootClaims {
  return claimsOf(roots.at(-1)!, 'the newest root') as RootClaims;
}

export function formerRootClaims({ roots }: TrustDocument): RootClaims | undefined {
  const former = roots.at(-2);
  return former && (claimsOf(former, 'the former root') as RootClaims);
}

export function keysetClaims({ keyset }: TrustDocument): KeysetClaims | undefined {
  return keyset && (claimsOf(keyset, 'the keyset') as KeysetClaims);
}

export function fingerprintOf({ roots }: TrustDocument): string {
  return rootFingerprint(payloadOf(roots.at(-1)!, 'the newest root'));
}

export function firstFingerprintOf({ roots }: TrustDocument): string {
  return rootFingerprint(payloadOf(roots[0]!, 'the first root'));
}

export function signRoot(claims: RootClaims, signers: readonly Signer[]): SignedDocument {
  return sign(ROOT_TYPE, refusing(() => rootToSign(claims)).payload, signers);
}

export function signKeyset(claims: KeysetClaims, signers: readonly Signer[]): SignedDocument {
  return sign(KEYSET_TYPE, refusing(() => keysetToSign(claims)).payload, signers);
}

/** Returns the document with additional signatures by the keys that have not signed it yet. */
export function addSignatures(
  document: SignedDocument,
  signers: readonly Signer[],
): SignedDocument {
  const { payloadType, payload, signatures } = document;
  const signed = new Set(signatures.map(({ keyid }) => keyid));
  const added = sign(
    payloadType,
    payloadOf(document, 'the document'),
    signers.filter(({ publicKeyId }) => !signed.has(publicKeyId)),
  );
  return { payloadType, payload, signatures: [...signatures, ...added.signatures] };
}

/** Counts the signatures of the newest root by its own keys and by the keys of the previous root. */
export function rootSignatures(document: TrustDocument): SignatureCount[] {
  const newest = document.roots.at(-1)!;
  const former = formerRootClaims(document);
  return [
    countOf('root', newest, rootClaims(document)),
    ...(former ? [countOf('former_root', newest, former)] : []),
  ];
}

export function keysetSignatures(document: TrustDocument): SignatureCount[] {
  return document.keyset ? [countOf('root', document.keyset, rootClaims(document))] : [];
}

export function isComplete(counts: readonly SignatureCount[]): boolean {
  return counts.every(({ count, threshold }) => count >= threshold);
}

export function lifetime(
  now: number,
  seconds: number,
): { readonly issued_at: string; readonly expires_at: string } {
  const from = Math.floor(now / 1000);
  return { issued_at: formatTime(from * 1000), expires_at: formatTime((from + seconds) * 1000) };
}

export function publicKeyOf({ x, publicKeyId: kid }: Signer): PublicKey {
  return { kty: 'OKP', crv: 'Ed25519', x, kid };
}

function checkKeys(keys: readonly PublicKey[], name: string): void {
  const imported = importKeyset({ keys });
  if (!imported.ok) throw invalid(`${name}: ${imported.detail}`);
}

function countOf(
  by: SignatureCount['by'],
  { signatures }: SignedDocument,
  { keys, threshold }: RootClaims,
): SignatureCount {
  const ids = new Set(keys.map(({ kid }) => kid));
  return { by, count: signatures.filter(({ keyid }) => ids.has(keyid)).length, threshold };
}

function sign(type: string, payload: Uint8Array, signers: readonly Signer[]): SignedDocument {
  const toSign = preAuthEncoding(type, payload);
  const signatures = signers.map((signer) => ({
    keyid: signer.publicKeyId,
    bytes: signer.sign(toSign),
  }));
  return JSON.parse(encodeEnvelope(payload, signatures, type)) as SignedDocument;
}

/** Checks the members that are needed to show and sign the document; verifiers check the rest. */
function claimsOf(document: SignedDocument, what: string): RootClaims | KeysetClaims {
  const text = decodeUtf8(payloadOf(document, what));
  const claims = refusing(() => parseStrictJson(text ?? '', `the payload of ${what}`));
  const { version, issuer, expires_at, keys } = isJsonObject(claims) ? claims : {};
  const isOne =
    typeof version === 'number' &&
    typeof issuer === 'string' &&
    typeof expires_at === 'string' &&
    Array.isArray(keys);
  if (!isOne) throw invalid(`the payload of ${what} is neither a root nor a keyset`);
  checkKeys(keys as PublicKey[], what);
  return claims as RootClaims | KeysetClaims;
}

function payloadOf(document: unknown, what: string): Uint8Array {
  const { payload, signatures } = isJsonObject(document) ? document : {};
  const bytes = typeof payload === 'string' ? decodeBase64(payload) : undefined;
  const isOne =
    bytes !== undefined &&
    Array.isArray(signatures) &&
    signatures.every((one) => isJsonObject(one) && typeof one['keyid'] === 'string');
  if (!isOne) throw invalid(`${what} is not a signed document`);
  return bytes;
}

function refusing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof LeaseError) throw invalid(error.message);
    throw error;
  }
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_data', message, {
    remedy: 'Use a file that `service-local identity root init` or `sign-keyset` wrote.',
  });
}
