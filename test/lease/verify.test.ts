import { verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readClaims } from '../../src/lease/claims.ts';
import { leaseToSign, parseEnvelope, PAYLOAD_TYPE } from '../../src/lease/envelope.ts';
import { importKeyset, publicKeyId } from '../../src/lease/keys.ts';
import { LEASE_REASONS } from '../../src/lease/reasons.ts';
import { orRefused } from '../../src/lease/refusal.ts';
import { formatTime } from '../../src/lease/time.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { runs } from '../length.ts';
import { claimsOf, issue, type LeaseFile, nodeKey, signingKey, testKey, trust } from './issuer.ts';
import { judge } from './judge.ts';
import { makeVectors, VECTORS, vectorsText, type Vectors } from './make-vectors.ts';

const FEW = 125;

const file = readFileSync(VECTORS, 'utf8');
const { vectors } = JSON.parse(file) as Vectors;

describe('vectors', () => {
  test.each(vectors)('$state $reason: $name', (vector) => {
    const { lease, state, reason, by, claims } = vector;
    const found = judge(vector);
    expect(found).toMatchObject({ state, reason });
    if (state === 'refused') expect(found.detail).toMatch(/^.{5,250}$/);
    if (by !== undefined) expect(found.trust).toMatchObject({ by });
    if (claims === undefined) return;
    expect(verifyLease(lease!, found.trust!.keys)).toEqual({
      ok: true,
      claims,
      keyId: claims.public_key_id,
    });
  });

  test('the vectors file is the output of the script', () => {
    expect(file).toBe(vectorsText(makeVectors()));
  });

  test('the vectors cover every reason except those of files, features and earlier times', () => {
    const shown = vectors.map(({ reason }) => reason);
    const byFile = ['missing', 'unreadable', 'too_large', 'foreign_owner', 'not_private'];
    const others = [...byFile, 'other_installation', 'entitlement_missing', 'clock_rollback'];
    expect(new Set([...shown, ...others])).toEqual(new Set([null, ...Object.keys(LEASE_REASONS)]));
  });
});

const key = testKey(1);
const keys = trust(key.jwk);

describe('size', () => {
  const lease = issue(claimsOf(key), key);

  test('leases and keysets of 64 KiB are accepted and larger ones are refused', () => {
    expect(verifyLease(lease.padEnd(65_536), keys)).toMatchObject({ ok: true });
    expect(verifyLease(lease.padEnd(65_537), keys)).toMatchObject({ reason: 'too_large' });
    const keyset = JSON.stringify({ keys: [key.jwk] });
    expect(importKeyset(keyset.padEnd(65_536))).toMatchObject({ ok: true });
    expect(importKeyset(keyset.padEnd(65_537))).toMatchObject({ reason: 'too_large' });
  });

  test('the largest possible lease is far below 64 KiB', () => {
    const id = '~'.repeat(128);
    const claims = claimsOf(key, {
      lease_id: id,
      deployment_id: id,
      customer_id: id,
      issuer: id,
      renewal_id: id,
      previous_lease_id: id,
      device_thumbprint: key.jwk.kid,
      entitlements: Array.from({ length: 64 }, (_, index) => `e${index}`.padEnd(64, 'x')),
    });
    expect(issue(claims, key, testKey(2), testKey(3), testKey(4)).length).toBeLessThan(10_000);
  });
});

describe('keys', () => {
  test('keys are trusted only while active or retiring', () => {
    const lease = issue(claimsOf(key), key);
    const other = testKey(2).jwk;
    const outcome = (status: unknown): unknown => {
      const result = importKeyset({ keys: [{ ...key.jwk, status }, other] });
      return result.ok && verifyLease(lease, result.keys).ok;
    };
    expect([undefined, 'active', 'retiring'].map(outcome)).toEqual([true, true, true]);
    expect(['revoked', 'next', 'toString', null, 1].map(outcome)).toEqual(
      Array.from({ length: 5 }, () => false),
    );
  });

  test('keys by Node are imported under their RFC 7638 id', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (secret) => {
        const { jwk, bytes } = signingKey(secret);
        const result = importKeyset({ keys: [jwk] });
        expect(result.ok && [...result.keys]).toEqual([[publicKeyId(jwk.x), bytes]]);
      }),
      { numRuns: runs(13) },
    );
  });
});

const id = fc.string({
  unit: fc.constantFrom(...Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i))),
  minLength: 1,
  maxLength: 128,
});
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
const someClaims = fc.record(
  {
    lease_id: id,
    deployment_id: id,
    customer_id: id,
    entitlements: fc.uniqueArray(fc.stringMatching(/^[a-z][a-z0-9_.:-]{0,63}$/), { maxLength: 64 }),
    issued_at: fc.integer({ min: 0, max: 4_000_000_000 }).map((second) => formatTime(second * 1e3)),
    ttl_seconds: fc.integer({ min: 1, max: 79_056_000 }),
    grace_period_seconds: fc.nat({ max: 79_056_000 }),
    issuer: id,
    renewal_id: id,
    previous_lease_id: id,
    device_thumbprint: fc.constant(testKey(9).jwk.kid),
  },
  { requiredKeys: [] },
);

test('a lease signed by Node verifies and returns the signed claims, for all claims and keys', () => {
  fc.assert(
    fc.property(secret, secret, someClaims, (seed, otherSeed, change) => {
      fc.pre(Buffer.compare(seed, otherSeed) !== 0);
      const [signer, other] = [signingKey(seed), signingKey(otherSeed)];
      const claims = claimsOf(signer, change);
      const lease = issue(claims, signer);
      expect(verifyLease(lease, trust(other.jwk, signer.jwk))).toEqual({
        ok: true,
        claims,
        keyId: signer.jwk.kid,
      });
      expect(verifyLease(lease, trust(other.jwk))).toMatchObject({ reason: 'unknown_key' });
      const { payload, signatures } = parseEnvelope(lease);
      const { toSign } = leaseToSign(claims);
      expect(Buffer.from(toSign).subarray(-payload.length)).toEqual(Buffer.from(payload));
      expect(verify(null, toSign, nodeKey(signer.bytes), signatures[0]!.bytes)).toBe(true);
    }),
    { numRuns: runs(25) },
  );
});

test('an issuer cannot sign a lease that would be refused', () => {
  const claims = claimsOf(key);
  expect(() => leaseToSign({ ...claims, ttl_seconds: 1 })).toThrow(
    expect.objectContaining({ name: 'LeaseError', reason: 'inconsistent_claims' }),
  );
  expect(() => leaseToSign({ ...claims, issuer: '' })).toThrow(
    'issuer is not 1 to 128 visible ASCII characters',
  );
});

test('an issuer signs only known claims', () => {
  const claims = claimsOf(key);
  const more = { internal_note: 'x', ...claims };
  expect(leaseToSign(more)).toEqual(leaseToSign(claims));
});

describe('hostile text', () => {
  const claims = claimsOf(key);
  const lease = issue(claims, key);
  const SNIPPETS =
    '" \\ { } [ ] : , = null 1e999 -0 "payload": "signatures": "sig":"" "__proto__": \\u0061 e30= A Q== / _';
  const tokens = fc.constantFrom(
    ...SNIPPETS.split(' '),
    ' ',
    '\n',
    '\0',
    '\ud800',
    '\uFEFF',
    PAYLOAD_TYPE,
    key.jwk.kid,
  );
  /** Halves of pairs too. */
  const anyText = fc
    .array(fc.nat({ max: 0xffff }), { maxLength: 10 })
    .map((units) => String.fromCharCode(...units));
  const text = fc.oneof({ arbitrary: tokens, weight: 3 }, { arbitrary: anyText, weight: 1 });
  const edit = fc.record({
    at: fc.nat(),
    removed: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 2000 })),
    inserted: text,
  });
  /** `original` after a few edits. */
  const edited = (original: string): fc.Arbitrary<string> =>
    fc.array(edit, { minLength: 1, maxLength: 4 }).map((edits) =>
      edits.reduce((result, { at, removed, inserted }) => {
        const start = at % (result.length + 1);
        return result.slice(0, start) + inserted + result.slice(start + removed);
      }, original),
    );

  /** Whether anything passes but the very payload that was signed, or a refusal has no reason. */
  function deceives(input: string): boolean {
    const result = verifyLease(input, keys);
    if (!result.ok) return !Object.hasOwn(LEASE_REASONS, result.reason);
    return !isDeepStrictEqual(
      [result, parseEnvelope(input).payload],
      [{ ok: true, claims, keyId: key.jwk.kid }, parseEnvelope(lease).payload],
    );
  }

  test('an edited lease is never accepted', () => {
    fc.assert(
      fc.property(edited(lease), (input) => {
        expect(deceives(input)).toBe(false);
      }),
      { numRuns: runs(FEW) },
    );
  });

  test('a lease with a flipped bit in payload or signature is rejected', () => {
    const parsed = JSON.parse(lease) as LeaseFile;
    const [payload, signature] = [parsed.payload, parsed.signatures[0]!.sig].map((part) =>
      Buffer.from(part, 'base64'),
    ) as [Buffer, Buffer];
    fc.assert(
      fc.property(fc.nat({ max: (payload.length + signature.length) * 8 - 1 }), (bit) => {
        const bytes = Buffer.concat([payload, signature]);
        bytes[bit >> 3]! ^= 1 << (bit & 7);
        const sig = bytes.subarray(payload.length).toString('base64');
        const changed = {
          ...parsed,
          payload: bytes.subarray(0, payload.length).toString('base64'),
          signatures: [{ keyid: key.jwk.kid, sig }],
        };
        expect(verifyLease(JSON.stringify(changed), keys).ok).toBe(false);
      }),
      { numRuns: runs(25) },
    );
  });

  test('envelopes of arbitrary values are never accepted', () => {
    const parsed = JSON.parse(lease) as LeaseFile;
    const member = (real: unknown): fc.Arbitrary<unknown> =>
      fc.oneof(
        { arbitrary: fc.constant<unknown>(real), weight: 3 },
        { arbitrary: fc.jsonValue(), weight: 1 },
        { arbitrary: fc.constantFrom<unknown>('', null, undefined, [], {}, 0), weight: 1 },
      );
    const signature = fc.record(
      { keyid: member(key.jwk.kid), sig: member(parsed.signatures[0]!.sig), more: fc.jsonValue() },
      { requiredKeys: ['keyid', 'sig'] },
    );
    const envelope = fc.record(
      {
        payloadType: member(PAYLOAD_TYPE),
        payload: member(parsed.payload),
        signatures: fc.oneof(fc.array(signature, { maxLength: 3 }), member([])),
        more: fc.jsonValue(),
      },
      { requiredKeys: ['payloadType', 'payload', 'signatures'] },
    );
    fc.assert(
      fc.property(envelope, (value) => {
        expect(deceives(JSON.stringify(value))).toBe(false);
      }),
      { numRuns: runs(FEW) },
    );
  });

  test('arbitrary text is never accepted', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.json(), text), (input) => {
        expect(deceives(input)).toBe(false);
      }),
      { numRuns: runs(FEW) },
    );
  });

  test('signed arbitrary payloads are accepted only with valid claims', () => {
    const nearly = fc.constantFrom<unknown>(0, 1, -1, 604_800.5, null, '', '2026-01-12T09:30:00Z');
    const changed = fc
      .dictionary(fc.constantFrom(...Object.keys(claims)), fc.oneof(nearly, fc.jsonValue()))
      .map((change) => JSON.stringify({ ...claims, ...change }));
    const payload = fc.oneof(changed, edited(JSON.stringify(claims)), fc.json(), anyText);
    fc.assert(
      fc.property(payload, (input) => {
        const read = orRefused(() => readClaims(new TextEncoder().encode(input)));
        // Sound is what can be issued.
        expect('ok' in read || readClaims(leaseToSign(read).payload)).toEqual('ok' in read || read);
      }),
      { numRuns: runs(FEW) },
    );
  });

  test('arbitrary text adds no other key when used as a keyset', () => {
    const keyset = JSON.stringify({ keys: [key.jwk, testKey(2).jwk] });
    const known = new Set([key.jwk.kid, testKey(2).jwk.kid]);
    fc.assert(
      fc.property(fc.oneof(edited(keyset), fc.json()), (input) => {
        const result = importKeyset(input);
        expect(!result.ok || [...result.keys.keys()].every((kid) => known.has(kid))).toBe(true);
      }),
      { numRuns: runs(FEW) },
    );
  });
});
