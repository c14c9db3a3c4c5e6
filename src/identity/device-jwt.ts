import { compactVerify, errors } from 'jose';
import * as z from 'zod';
import { parseStrictJson } from '../lease/json.ts';
import { LeaseError } from '../lease/refusal.ts';

/** RFC 7638 thumbprint of a device's key. */
export const THUMBPRINT = z.string().regex(/^[\w-]{43}$/);

export interface JwtForm<T> {
  readonly typ: string;
  readonly claims: z.ZodType<T>;
  /** In characters. */
  readonly maxLength: number;
  readonly malformed: (detail: string) => Error;
}

/** Returns the claims without verifying the signature. Issuer, subject and key must be equal. */
export function readDeviceJwt<T extends { readonly iss: string; readonly sub: string }>(
  jwt: string,
  form: JwtForm<T>,
): T {
  const { typ, claims: schema, maxLength, malformed } = form;
  if (jwt.length > maxLength) throw malformed(`it has more than ${maxLength} characters`);
  const parts = jwt.split('.');
  const [header, payload] = parts;
  // The library accepts several base64 spellings of the same JWT.
  if (
    header === undefined ||
    payload === undefined ||
    parts.length !== 3 ||
    !parts.every(isBase64Url)
  ) {
    throw malformed('it does not consist of three parts in base64url');
  }
  const headerSchema = z.object({
    typ: z.literal(typ),
    alg: z.literal('EdDSA'),
    kid: THUMBPRINT,
    // RFC 7515 §4.1.11: `crit` lists extensions that must be understood; none are.
    crit: z.undefined().optional(),
  });
  const { kid } = readPart(header, 'header', headerSchema, malformed);
  const claims = readPart(payload, 'payload', schema, malformed);
  if (claims.iss !== kid || claims.sub !== kid) {
    throw malformed('iss, sub and kid are not the same');
  }
  return claims;
}

/**
 * Verifies the signature. Like `src/lease/ed25519.ts`, Node rejects scalars out of range and points
 * that are not canonical. Keys are checked when they are enrolled.
 *
 * @param x the public key, base64url.
 */
export async function isSignedBy(jwt: string, x: string): Promise<boolean> {
  try {
    await compactVerify(jwt, { kty: 'OKP', crv: 'Ed25519', x }, { algorithms: ['EdDSA'] });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}

function isBase64Url(text: string): boolean {
  return Buffer.from(text, 'base64url').toString('base64url') === text;
}

function readPart<T>(
  part: string,
  what: string,
  schema: z.ZodType<T>,
  malformed: (detail: string) => Error,
): T {
  let value: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(part, 'base64url'));
    value = parseStrictJson(text, `the ${what}`);
  } catch (error) {
    throw malformed(error instanceof LeaseError ? error.message : `the ${what} is not UTF-8`);
  }
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const { path, message } = read.error.issues[0]!;
  throw malformed(`${[what, ...path].join('.')}: ${message}`);
}
