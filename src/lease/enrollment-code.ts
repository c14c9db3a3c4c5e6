/**
 * The text that an administrator gives to a new machine: the one-time code, and, where the issuer has
 * a trust root, its fingerprint after a dot, as in `9F3K-….Zx3…`. The fingerprint lets the machine
 * check the keys of the server at its first contact.
 */
export interface EnrollmentText {
  /** The part of the code that the server redeems. */
  readonly code: string;
  /** Fingerprint of the issuer's root: 43 base64url characters. */
  readonly rootFingerprint?: string | undefined;
}

/** Whether a text has the form of a root's fingerprint. */
export function isRootFingerprint(text: string): boolean {
  return /^[\w-]{43}$/.test(text);
}

/**
 * Whether a text has the form of the part that the server redeems: 28 letters of Crockford's Base 32,
 * in any case, with any hyphens and spaces, and with O, I and L for 0 and 1.
 */
export function isEnrollmentCode(text: string): boolean {
  return /^[0-9A-TV-Z]{28}$/.test(text.toUpperCase().replaceAll(/[\s-]/g, ''));
}

export function formatEnrollmentText({ code, rootFingerprint }: EnrollmentText): string {
  return rootFingerprint === undefined ? code : `${code}.${rootFingerprint}`;
}

/**
 * Accepts a code without a fingerprint, too. Returns undefined if the text after the dot is not a
 * fingerprint: a truncated code must not be accepted as one without a root.
 */
export function parseEnrollmentText(text: string): EnrollmentText | undefined {
  const [code = '', rootFingerprint, ...rest] = text.trim().split('.');
  if (rootFingerprint === undefined) return { code };
  if (rest.length > 0 || !isRootFingerprint(rootFingerprint)) return undefined;
  return { code, rootFingerprint };
}
