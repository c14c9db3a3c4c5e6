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
