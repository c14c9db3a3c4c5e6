import { isDigest } from './claims.ts';

/**
 * The text that an administrator gives to a new machine: the one-time code and, if the issuer has a
 * trust root, a dot and its fingerprint, as in `9F3K-….Zx3…`. With the fingerprint the machine checks
 * the keys of the server at first contact.
 */
export interface EnrollmentText {
  /** The part of the code that the server redeems. */
  readonly code: string;
  readonly rootFingerprint?: string | undefined;
}

/**
 * Whether a text has the form of the one-time code: 28 letters of Crockford's Base 32 in any case, with
 * any hyphens and spaces, and with O, I and L for 0 and 1.
 */
export function isEnrollmentCode(text: string): boolean {
  return /^[0-9A-TV-Z]{28}$/.test(text.toUpperCase().replaceAll(/[\s-]/g, ''));
}

export function formatEnrollmentText({ code, rootFingerprint }: EnrollmentText): string {
  return rootFingerprint === undefined ? code : `${code}.${rootFingerprint}`;
}

/**
 * Parses a code with or without a fingerprint. Returns undefined if the text after the dot is not a
 * fingerprint, because a truncated code must not be accepted as one without a root.
 */
export function parseEnrollmentText(text: string): EnrollmentText | undefined {
  const [code = '', rootFingerprint, ...rest] = text.trim().split('.');
  if (rootFingerprint === undefined) return { code };
  if (rest.length > 0 || !isDigest(rootFingerprint)) return undefined;
  return { code, rootFingerprint };
}
