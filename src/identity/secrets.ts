import { hash, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;

/** Returns 256 random bits in base64url. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** SHA-256 in hex, for storage. Use only for secrets that cannot be guessed. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret);
}

/** The alphabet of Crockford's Base32, without easily confused letters. */
const CODE_LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** 28 letters are 140 bits. */
const CODE_GROUPS = 7;
const GROUP_LETTERS = 4;

/** Returns a secret that people can type: `9F3K-…`. */
export function newCode(): string {
  const bytes = randomBytes(CODE_GROUPS * GROUP_LETTERS);
  const letters = Array.from(bytes, (byte) => CODE_LETTERS[byte % CODE_LETTERS.length]!);
  return Array.from({ length: CODE_GROUPS }, (_, group) =>
    letters.slice(group * GROUP_LETTERS, (group + 1) * GROUP_LETTERS).join(''),
  ).join('-');
}

/** Hashes a code after normalizing case, separators and confusable letters by Crockford's rules. */
export function hashCode(code: string): string {
  const letters = code
    .toUpperCase()
    .replaceAll(/[\s-]/g, '')
    .replaceAll('O', '0')
    .replaceAll(/[IL]/g, '1');
  return hashSecret(letters);
}
