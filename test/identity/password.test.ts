import { describe, expect, test } from 'vitest';
import {
  hashPassword,
  isPassword,
  NOBODYS_HASH,
  passwordProblem,
} from '../../src/identity/password.ts';
import { isAtLength } from '../length.ts';
import { cheapHash } from './cheap-hash.ts';

const FORM = /^scrypt\$17\$8\$1\$[\w-]{22}\$[\w-]{43}$/;
/** A hash with minimal cost. */
const QUICK = NOBODYS_HASH.replace('$17$', '$4$');

describe('the hash of a password', () => {
  test('hashing puts its parameters into the hash, and does not block other work', async () => {
    const hashing = hashPassword('correct horse');
    let turns = 0;
    const count = setInterval(() => turns++);
    const hash = await hashing;
    clearInterval(count);
    expect(hash).toMatch(FORM);
    expect(turns).toBeGreaterThan(10);
  });

  test.runIf(isAtLength)('a hash differs each time, and matches its password', async () => {
    const hashes = [await hashPassword('correct horse'), await hashPassword('correct horse')];
    expect(new Set(hashes).size).toBe(2);
    for (const hash of hashes) {
      expect(await isPassword('correct horse', hash)).toBe(true);
      expect(await isPassword('correct horsE', hash)).toBe(false);
    }
  });

  test('only the password that was hashed matches the hash', async () => {
    const hash = cheapHash('correct horse');
    expect(await isPassword('correct horse', hash)).toBe(true);
    expect(await isPassword('correct horsE', hash)).toBe(false);
  });

  test.runIf(isAtLength)('composed and decomposed characters have the same hash', async () => {
    const hash = await hashPassword('caf\u00E9 caf\u00E9 caf\u00E9');
    expect(await isPassword('cafe\u0301 cafe\u0301 cafe\u0301', hash)).toBe(true);
  });

  test('checking the password of an unknown name takes as long as any other', () => {
    expect(NOBODYS_HASH).toMatch(FORM);
  });

  test('passwords are refused while too many wait, and accepted afterwards', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 30 }, () => isPassword('x', QUICK)),
    );
    const refused = results.filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(10);
    expect(refused[0]).toMatchObject({ reason: { code: 'overloaded', retryAfterSeconds: 5 } });
    expect(await isPassword('x', QUICK)).toBe(false);
  });

  test('known clients have places while unknown clients occupy all of theirs', async () => {
    const strangers = Promise.allSettled(Array.from({ length: 30 }, () => isPassword('x', QUICK)));
    const known = Array.from({ length: 11 }, () => isPassword('x', QUICK, true));
    const results = await Promise.allSettled(known);
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    await strangers;
  });
});

test.each([
  ['elevenchars', 'a password must have 12 to 256 characters, not 11'],
  ['x'.repeat(257), 'a password must have 12 to 256 characters, not 257'],
  ['🐴'.repeat(11), 'a password must have 12 to 256 characters, not 11'],
  ['correct\u0000horse battery', 'a password must not contain control characters'],
  ['correct horse\n', 'a password must not contain control characters'],
  ['correct horse \uD83D', 'a password must not contain control characters'],
  ['twelve chars', undefined],
  ['x'.repeat(256), undefined],
  ['🐴'.repeat(12), undefined],
])('%j as a new password: %s', (password, problem) => {
  expect(passwordProblem(password)).toBe(problem);
});
