import { createHash, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;

/** Cannot be guessed; base64url. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** What is kept of a secret: SHA-256 in hex. Good only for what cannot be guessed. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Of Crockford's Base 32: nobody takes one of them for another. */
const CODE_LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** 28 letters are 140 bits. */
const CODE_GROUPS = 7;
const GROUP_LETTERS = 4;

/** A secret that people type: `9F3K-…`. */
export function newCode(): string {
  const bytes = randomBytes(CODE_GROUPS * GROUP_LETTERS);
  const letters = Array.from(bytes, (byte) => CODE_LETTERS[byte % CODE_LETTERS.length]!);
  return Array.from({ length: CODE_GROUPS }, (_, group) =>
    letters.slice(group * GROUP_LETTERS, (group + 1) * GROUP_LETTERS).join(''),
  ).join('-');
}

/** What is kept of a code: the same for all ways in which people type it, by Crockford's rules. */
export function hashCode(code: string): string {
  const letters = code
    .toUpperCase()
    .replaceAll(/[\s-]/g, '')
    .replaceAll('O', '0')
    .replaceAll(/[IL]/g, '1');
  return hashSecret(letters);
}
