import { verify } from 'node:crypto';
import fc from 'fast-check';
import nacl from 'tweetnacl';
import { describe, expect, test } from 'vitest';
import { keyFault, signatureFault } from '../../src/lease/ed25519.ts';
import { runs } from '../length.ts';
import { nodeKey, signingKey, testKey } from './issuer.ts';
import { fromHex, L, littleEndian, NOT_CANONICAL, P, SMALL_ORDER } from './points.ts';
import { RFC_8032 } from './rfc8032.ts';

const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
const message = fc.uint8Array({ maxLength: 300 });

/** The number in a signature, plus one more of the group order: another signature, if it passes. */
function malleate(signature: Uint8Array): Uint8Array {
  const scalar = BigInt(`0x${Buffer.from(signature.slice(32).toReversed()).toString('hex')}`);
  return new Uint8Array([...signature.slice(0, 32), ...littleEndian(scalar + L)]);
}

describe.each(RFC_8032)('RFC 8032 §7.1 $name', (vector) => {
  const key = signingKey(fromHex(vector.secret));
  const bytes = fromHex(vector.message);
  const signature = fromHex(vector.signature);

  test('both implementations agree with it', () => {
    expect(key.bytes).toEqual(fromHex(vector.publicKey));
    expect(key.sign(bytes)).toEqual(signature);
    expect(keyFault(key.bytes)).toBeUndefined();
    expect(signatureFault(bytes, signature, key.bytes)).toBeUndefined();
  });

  test('a second signature cannot be derived from it', () => {
    const second = malleate(signature);
    // The check is not in the library below.
    expect(nacl.sign.detached.verify(bytes, second, key.bytes)).toBe(true);
    expect(signatureFault(bytes, second, key.bytes)).toBe('signature_scalar');
  });
});

describe('signatures', () => {
  test('signatures by Node are accepted, for any key and message', () => {
    fc.assert(
      fc.property(secret, message, (seed, bytes) => {
        const key = signingKey(seed);
        expect(keyFault(key.bytes)).toBeUndefined();
        expect(signatureFault(bytes, key.sign(bytes), key.bytes)).toBeUndefined();
      }),
      { numRuns: runs(25) },
    );
  });

  test('signatures with a flipped bit are judged as by Node', () => {
    const bits = fc.nat({ max: (64 + 40) * 8 - 1 });
    const text = fc.uint8Array({ minLength: 40, maxLength: 40 });
    fc.assert(
      fc.property(secret, text, bits, (seed, bytes, bit) => {
        const key = signingKey(seed);
        const all = new Uint8Array([...key.sign(bytes), ...bytes]);
        all[bit >> 3]! ^= 1 << (bit & 7);
        const [signature, changed] = [all.slice(0, 64), all.slice(64)];
        expect(verify(null, changed, nodeKey(key.bytes), signature)).toBe(false);
        expect(signatureFault(changed, signature, key.bytes)).toBeDefined();
      }),
      { numRuns: runs(25) },
    );
  });

  const key = testKey(1);
  const bytes = fromHex('00ff');
  const signature = key.sign(bytes);
  const point = signature.slice(0, 32);

  test.each([
    ['empty', 'signature_length', []],
    ['cut short', 'signature_length', signature.slice(0, 63)],
    ['padded', 'signature_length', [...signature, 0]],
    ['with the group order as number', 'signature_scalar', [...point, ...littleEndian(L)]],
    [
      'with all bits of the number',
      'signature_scalar',
      [...point, ...new Uint8Array(32).fill(255)],
    ],
    ['with the largest number', 'bad_signature', [...point, ...littleEndian(L - 1n)]],
    ['of nothing but zeros', 'bad_signature', new Uint8Array(64)],
  ] as const)('%s are refused: %s', (_, reason, faulty) => {
    expect(signatureFault(bytes, Uint8Array.from(faulty), key.bytes)).toBe(reason);
  });

  test('signatures with a non-canonical point are refused', () => {
    for (const encoding of NOT_CANONICAL) {
      const faulty = new Uint8Array([...encoding, ...signature.slice(32)]);
      expect(signatureFault(bytes, faulty, key.bytes)).toBe('signature_point');
    }
  });
});

describe('keys', () => {
  test.each(SMALL_ORDER)('keys of order %i are refused', (_, encoding) => {
    expect(keyFault(encoding)).toBe('key_small_order');
  });

  test('keys of small order would verify forged signatures', () => {
    const [, identity] = SMALL_ORDER[0]!;
    const signature = new Uint8Array([...identity, ...new Uint8Array(32)]);
    for (const text of ['any', 'text', 'at all']) {
      const bytes = new TextEncoder().encode(text);
      expect(signatureFault(bytes, signature, identity)).toBeUndefined();
    }
  });

  test('non-canonical keys are refused', () => {
    for (const encoding of NOT_CANONICAL) expect(keyFault(encoding)).toBe('key_not_canonical');
  });

  test('keys are accepted as points exactly when RFC 8032 §5.1.3 can decode them', () => {
    const y = fc.bigInt({ min: 2n, max: P - 2n });
    const seen = new Set<boolean>();
    fc.assert(
      fc.property(y, fc.boolean(), (value, isNegative) => {
        const encoding = littleEndian(value + (isNegative ? 2n ** 255n : 0n));
        const isPoint = decodes(value);
        seen.add(isPoint);
        expect(keyFault(encoding)).toBe(isPoint ? undefined : 'key_not_on_curve');
      }),
      {
        numRuns: runs(50),
        examples: [
          [2n, false],
          [3n, true],
        ],
      },
    );
    expect(seen.size).toBe(2);
  });
});

/** RFC 8032 §5.1.3 step 2 and 3: whether there is an x for this y. */
function decodes(y: bigint): boolean {
  const d = (-121665n * power(121666n, P - 2n)) % P;
  const u = y * y - 1n;
  const v = d * y * y + 1n;
  const x = u * power(v, 3n) * power(u * power(v, 7n), (P - 5n) / 8n);
  return [u, -u].some((root) => mod(v * x * x - root) === 0n);
}

function power(base: bigint, exponent: bigint): bigint {
  if (exponent === 0n) return 1n;
  const half = power(mod(base * base), exponent >> 1n);
  return mod(exponent & 1n ? half * base : half);
}

const mod = (value: bigint): bigint => ((value % P) + P) % P;
