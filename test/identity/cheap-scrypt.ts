import type { ScryptOptions } from 'node:crypto';

type Crypto = typeof import('node:crypto');

/** For `vi.mock(import('node:crypto'), …)`: scrypt with minimal cost. */
export function withCheapScrypt(crypto: Crypto): Crypto {
  const scrypt = (
    password: string,
    salt: Buffer,
    length: number,
    options: ScryptOptions,
    done: (error: Error | null, key: Buffer) => void,
  ): void => crypto.scrypt(password, salt, length, { ...options, N: 2 ** 4 }, done);
  return { ...crypto, scrypt: scrypt as unknown as Crypto['scrypt'] };
}
