import { decodeBase64, encodeBase64 } from './base64.ts';
import { checkClaims, type LeaseClaims } from './claims.ts';
import { canonicalJson, isJsonObject, parseStrictJson, quote } from './json.ts';
import { LeaseError } from './refusal.ts';
import { encodeUtf8 } from './utf8.ts';

/** The type is signed too, so that a signature of another document is not valid for a lease. */
export const PAYLOAD_TYPE = 'application/vnd.service-local.license-lease.v1+json';

/** A lease needs one for the current key and one for its successor; each costs verification time. */
const MAX_LEASE_SIGNATURES = 4;

/** An Ed25519 signature with the id of its key. */
export interface Signature {
  /** `publicKeyId` of the signing key. */
  readonly keyid: string;
  readonly bytes: Uint8Array;
}

export interface Envelope {
  readonly payload: Uint8Array;
  readonly signatures: readonly Signature[];
}

/**
 * Returns the bytes to sign for a payload: the PAE of DSSE 1.0.2
 * (https://github.com/secure-systems-lab/dsse/blob/v1.0.2/protocol.md).
 */
export function preAuthEncoding(type: string, payload: Uint8Array): Uint8Array {
  const header = encodeUtf8(`DSSEv1 ${encodeUtf8(type).length} ${type} ${payload.length} `);
  const bytes = new Uint8Array(header.length + payload.length);
  bytes.set(header);
  bytes.set(payload, header.length);
  return bytes;
}

/**
 * Returns the bytes to sign with Ed25519 (`toSign`), and the `payload` for `encodeEnvelope`: the claims
 * in canonical JSON (RFC 8785).
 *
 * @throws LeaseError for claims that `verifyLease` would refuse.
 */
export function leaseToSign(claims: LeaseClaims): {
  readonly payload: Uint8Array;
  readonly toSign: Uint8Array;
} {
  const payload = encodeUtf8(canonicalJson(checkClaims(claims)));
  return { payload, toSign: preAuthEncoding(PAYLOAD_TYPE, payload) };
}

/** Returns the JSON envelope of DSSE 1.0.2; with the default type, the content of a lease file. */
export function encodeEnvelope(
  payload: Uint8Array,
  signatures: readonly Signature[],
  type = PAYLOAD_TYPE,
): string {
  return JSON.stringify({
    payloadType: type,
    payload: encodeBase64(payload),
    signatures: signatures.map(({ keyid, bytes }) => ({ keyid, sig: encodeBase64(bytes) })),
  });
}

/**
 * Parses the content of a lease file without verifying its signatures.
 *
 * @throws LeaseError as `parseStrictJson` and `readEnvelope`.
 */
export function parseEnvelope(text: string): Envelope {
  return readEnvelope(parseStrictJson(text, 'the lease'), PAYLOAD_TYPE, 'the lease');
}

/**
 * Reads the envelope in a JSON value without verifying its signatures. Stricter than DSSE: it has no
 * other members, every signature names its key, and base64 has the standard alphabet and padding.
 *
 * @param what name of the value in messages.
 * @throws LeaseError `not_an_envelope`, `wrong_payload_type`, `bad_base64`.
 */
export function readEnvelope(
  value: unknown,
  type: string,
  what: string,
  maxSignatures = MAX_LEASE_SIGNATURES,
): Envelope {
  const members = membersOf(value, ['payloadType', 'payload', 'signatures'], what);
  const { payloadType, payload, signatures } = members;
  if (typeof payloadType !== 'string') throw notAnEnvelope('payloadType is not a string');
  if (payloadType !== type) {
    throw new LeaseError('wrong_payload_type', `payloadType is ${quote(payloadType)}`);
  }
  if (!Array.isArray(signatures) || signatures.length < 1 || signatures.length > maxSignatures) {
    throw notAnEnvelope(`signatures must be a list of 1 to ${maxSignatures} entries`);
  }
  const read = signatures.map((signature: unknown, index): Signature => {
    const place = `signatures[${index}]`;
    const { keyid, sig } = membersOf(signature, ['keyid', 'sig'], place);
    if (typeof keyid !== 'string') throw notAnEnvelope(`${place}.keyid is not a string`);
    return { keyid, bytes: bytesOf(sig, `${place}.sig`) };
  });
  if (new Set(read.map(({ keyid }) => keyid)).size < read.length) {
    throw notAnEnvelope('two signatures name the same key');
  }
  return { payload: bytesOf(payload, 'payload'), signatures: read };
}

function membersOf<Name extends string>(
  value: unknown,
  names: readonly Name[],
  what: string,
): Readonly<Record<Name, unknown>> {
  if (!isJsonObject(value)) throw notAnEnvelope(`${what} is not a JSON object`);
  const missing = names.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) throw notAnEnvelope(`${what} has no member ${missing}`);
  if (Object.keys(value).length > names.length) {
    throw notAnEnvelope(`${what} has members other than ${names.join(', ')}`);
  }
  return value;
}

function bytesOf(value: unknown, what: string): Uint8Array {
  if (typeof value !== 'string') throw notAnEnvelope(`${what} is not a string`);
  const bytes = decodeBase64(value);
  if (bytes === undefined) {
    throw new LeaseError('bad_base64', `${what} is not base64 with padding`);
  }
  return bytes;
}

function notAnEnvelope(detail: string): LeaseError {
  return new LeaseError('not_an_envelope', detail);
}
