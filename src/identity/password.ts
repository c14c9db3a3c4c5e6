import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { promisify } from 'node:util';
import { ServiceError } from '../base/errors.ts';

/** Parameters of scrypt (RFC 7914). Each guess costs 128 MiB and about a quarter of a second. */
const LOG2_N = 17;
const BLOCK_SIZE = 8;
const PARALLEL = 1;
const KEY_BYTES = 32;
const SALT_BYTES = 16;

const LEAST_CHARACTERS = 12;
const MOST_CHARACTERS = 256;

/** Bounds the time for which the last client waits. */
const MOST_WAITING = 20;
/** Additional places for known clients, so that other clients cannot take all places. */
const MORE_FOR_KNOWN = 10;

/** Why a new password is refused; `undefined` if it is accepted. */
export function passwordProblem(password: string): string | undefined {
  const { length } = Array.from(password);
  if (!password.isWellFormed() || /\p{Cc}/u.test(password)) {
    return 'a password must not contain control characters';
  }
  if (length >= LEAST_CHARACTERS && length <= MOST_CHARACTERS) return undefined;
  return `a password must have ${LEAST_CHARACTERS} to ${MOST_CHARACTERS} characters, not ${length}`;
}

/** `scrypt$<log2 N>$<r>$<p>$<salt>$<key>`, the last two in base64url. @throws ServiceError `overloaded` */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const key = await derive(password, salt, LOG2_N, BLOCK_SIZE, PARALLEL);
  return format(salt, key);
}

function format(salt: Buffer, key: Buffer): string {
  const costs = [LOG2_N, BLOCK_SIZE, PARALLEL].join('$');
  return `scrypt$${costs}$${salt.toString('base64url')}$${key.toString('base64url')}`;
}

/** A hash that matches no password, so that checking an unknown name takes as long. */
export const NOBODYS_HASH = format(Buffer.alloc(SALT_BYTES), Buffer.alloc(KEY_BYTES));

/**
 * @param isKnown whether the administrator logged in from the same network before.
 * @throws ServiceError `overloaded`
 */
export async function isPassword(
  password: string,
  hash: string,
  isKnown = false,
): Promise<boolean> {
  const [, log2N, r, p, salt = '', key = ''] = hash.split('$');
  const derived = await derive(
    password,
    Buffer.from(salt, 'base64url'),
    Number(log2N),
    Number(r),
    Number(p),
    isKnown,
  );
  return timingSafeEqual(derived, Buffer.from(key, 'base64url'));
}

const scryptInThread = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

let last: Promise<unknown> = Promise.resolve();
let waiting = 0;

/** Computes one key at a time, because any client can request one and each takes memory and a thread. */
function derive(
  password: string,
  salt: Buffer,
  log2N: number,
  r: number,
  p: number,
  isKnown = false,
): Promise<Buffer> {
  if (waiting >= MOST_WAITING + (isKnown ? MORE_FOR_KNOWN : 0)) {
    const error = new ServiceError('overloaded', 'too many passwords are waiting to be checked', {
      remedy: 'Try again later.',
      retryAfterSeconds: 5,
    });
    return Promise.reject(error);
  }
  waiting++;
  const N = 2 ** log2N;
  const derived = last
    // Keyboards differ in whether they compose characters.
    .then(() =>
      scryptInThread(password.normalize('NFKC'), salt, KEY_BYTES, {
        N,
        r,
        p,
        maxmem: 256 * N * r,
      }),
    )
    .finally(() => waiting--);
  last = derived.catch(() => {});
  return derived;
}
