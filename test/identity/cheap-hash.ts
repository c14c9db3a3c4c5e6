import { randomBytes, scryptSync } from 'node:crypto';

/** A valid hash with minimal cost, so that tests do not wait for scrypt. */
export function cheapHash(password: string): string {
  const salt = randomBytes(16);
  const key = scryptSync(password, salt, 32, { N: 2 ** 4, r: 8, p: 1 });
  return `scrypt$4$8$1$${salt.toString('base64url')}$${key.toString('base64url')}`;
}
