import { randomBytes, scryptSync } from 'node:crypto';

/**
 * A hash of a password, in the form of `password.ts`, that is checked in no time. Passwords cost as
 * much as they must in `password.test.ts`, and in processes; elsewhere they would only take time.
 */
export function cheapHash(password: string): string {
  const salt = randomBytes(16);
  const key = scryptSync(password, salt, 32, { N: 2 ** 4, r: 8, p: 1 });
  return `scrypt$4$8$1$${salt.toString('base64url')}$${key.toString('base64url')}`;
}
