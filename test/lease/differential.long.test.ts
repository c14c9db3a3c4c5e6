/**
 * Compares the verifiers in all languages on documents that fast-check makes: whole licenses with
 * signatures, versions, issuers, times and pins that fit or do not fit, and edits of their texts.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeEnvelope, PAYLOAD_TYPE, preAuthEncoding } from '../../src/lease/envelope.ts';
import { KEYSET_TYPE, ROOT_TYPE, rootFingerprint } from '../../src/lease/root.ts';
import { claimsOf, type SigningKey, testKey } from './issuer.ts';
import { judge } from './judge.ts';
import type { Vector } from './make-vectors.ts';
import { judgeAll, VERIFIERS } from './runtimes.ts';

const CASES = Number(process.env['SERVICE_LOCAL_TEST_DIFFERENTIAL'] ?? 1000);

type Json = Readonly<Record<string, unknown>>;

/** Mostly the first value, sometimes one of the others. */
const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { arbitrary: fc.constant(usual), weight: 40 },
    { arbitrary: fc.constantFrom(usual, ...others), weight: 1 },
  );

const WORTHLESS: readonly unknown[] = [
  null,
  undefined,
  true,
  0,
  1,
  -0,
  1.5,
  2 ** 53,
  '',
  'x',
  [],
  {},
  [[]],
  '2026-02-30T00:00:00Z',
  '2026-01-05T09:30:00.0Z',
  'é',
];

/** The object, sometimes with one member replaced by a worthless value or by one more. */
const damaged = (value: Json): fc.Arbitrary<Json> =>
  fc.oneof(
    { arbitrary: fc.constant(value), weight: 60 },
    {
      arbitrary: fc
        .tuple(fc.constantFrom(...Object.keys(value), 'extra', 'd'), fc.constantFrom(...WORTHLESS))
        .map(([name, worthless]) => ({ ...value, [name]: worthless })),
      weight: 1,
    },
  );

/** A signed document, with signatures by `signers` over what is stated to be of `type`. */
function sealed(claims: Json, signers: readonly SigningKey[], type: string, as = type): Json {
  const payload = new TextEncoder().encode(JSON.stringify(claims));
  const toSign = preAuthEncoding(as, payload);
  const signatures = signers.map(({ jwk, sign }) => ({ keyid: jwk.kid, bytes: sign(toSign) }));
  return JSON.parse(encodeEnvelope(payload, signatures, type)) as Json;
}

const [rootA, rootB, rootC, leaseA, leaseB, leaseC] = [1, 2, 3, 4, 5, 6].map(testKey) as [
  SigningKey,
  SigningKey,
  SigningKey,
  SigningKey,
  SigningKey,
  SigningKey,
];

const issuer = mostly('https://licenses.example', 'other');
const expiry = mostly('2027-01-05T09:30:00Z', '2026-01-06T00:00:00Z', '2026-01-05T09:30:00Z');
const rootKeys = fc.subarray([rootA, rootB, rootC], { minLength: 1 });
const leaseKeys = fc.oneof(
  { arbitrary: fc.subarray([leaseA, leaseB], { minLength: 1 }), weight: 8 },
  { arbitrary: fc.subarray([leaseA, leaseB, leaseC, rootA]), weight: 1 },
);
const jwks = (keys: readonly SigningKey[]): fc.Arbitrary<readonly Json[]> =>
  fc.tuple(
    ...keys.map(({ jwk }) =>
      fc
        .tuple(mostly<unknown>('active', 'retiring', 'revoked', undefined, null), fc.constant(jwk))
        .chain(([status, key]) => damaged({ ...key, status })),
    ),
  );

interface SomeRoot {
  readonly envelope: Json;
  readonly keys: readonly SigningKey[];
}

const rootAfter = (former: readonly SigningKey[], version: number): fc.Arbitrary<SomeRoot> =>
  rootKeys.chain((keys) =>
    fc
      .record({
        keys: jwks(keys),
        version: mostly(version, version + 1, 1),
        issuer,
        expires_at: expiry,
        threshold: mostly(1, 1, 2, 3),
        signers: fc.oneof(
          { arbitrary: fc.constant([...new Set([...former, ...keys])]), weight: 4 },
          { arbitrary: fc.subarray([rootA, rootB, rootC]), weight: 1 },
        ),
        type: mostly<string>(ROOT_TYPE, KEYSET_TYPE),
      })
      .chain(({ signers, type, ...claims }) =>
        damaged({ issued_at: '2026-01-05T09:30:00Z', ...claims }).map((whole) => ({
          envelope: sealed(whole, signers, ROOT_TYPE, type),
          keys,
        })),
      ),
  );

const chain: fc.Arbitrary<readonly SomeRoot[]> = rootAfter([], 1).chain((first) =>
  fc.oneof(
    fc.constant([first]),
    rootAfter(first.keys, 2).chain((second) =>
      fc.oneof(
        fc.constant([first, second]),
        rootAfter(second.keys, 3).map((third) => [first, second, third]),
      ),
    ),
  ),
);

function fingerprintOf({ envelope }: SomeRoot): string {
  return rootFingerprint(Buffer.from(envelope['payload'] as string, 'base64'));
}

/** Keyset documents of one issuer, with and without roots. */
const document = (roots: readonly SomeRoot[]): fc.Arbitrary<Json> =>
  fc
    .record({
      cut: fc.oneof(fc.constant(roots.length), fc.nat({ max: roots.length })),
      version: fc.integer({ min: 1, max: 3 }),
      issuer,
      expires_at: expiry,
      keys: leaseKeys,
      retired: mostly<unknown>([], [leaseA.jwk.kid], ['é'], 'x'),
      named: fc.nat({ max: roots.length }),
      endorsers: fc.subarray([leaseA, leaseB, leaseC]),
      signers: fc.oneof(
        { arbitrary: fc.constant(undefined), weight: 4 },
        { arbitrary: fc.subarray([rootA, rootB, rootC]), weight: 1 },
      ),
      isSigned: mostly(true, false),
    })
    .chain(({ cut, named, endorsers, signers, isSigned, keys, ...claims }) =>
      fc.tuple(jwks(keys), jwks(keys)).chain(([listed, bare]) => {
        const shown = roots.slice(0, cut);
        const root = named < roots.length ? fingerprintOf(roots[named]!) : undefined;
        const by = [...(signers ?? shown.at(-1)?.keys ?? []), ...endorsers];
        return damaged({ issued_at: '2026-01-05T09:30:00Z', ...claims, root, keys: listed }).map(
          (whole) => ({
            keys: bare,
            ...(shown.length > 0 && { roots: shown.map(({ envelope }) => envelope) }),
            ...(isSigned && { keyset: sealed(whole, by, KEYSET_TYPE) }),
          }),
        );
      }),
    )
    .chain(damaged);

const lease: fc.Arbitrary<string> = fc
  .record({
    key: fc.constantFrom(leaseA, leaseB, leaseC),
    change: fc.dictionary(
      fc.constantFrom(
        ...Object.keys(claimsOf(leaseA)),
        'product',
        'binding',
        'machine_hash',
        'device_thumbprint',
      ),
      fc.oneof(
        fc.constantFrom(...WORTHLESS),
        fc.constantFrom<unknown>('device', 'machine', 'trader', rootA.jwk.kid, 604_800),
      ),
      { maxKeys: 2 },
    ),
    isChanged: mostly(false, true),
    others: fc.subarray([leaseA, leaseB, leaseC]),
  })
  .map(({ key, change, isChanged, others }) => {
    const claims = { ...claimsOf(key), ...(isChanged && change) };
    return JSON.stringify(sealed(claims, [...new Set([key, ...others])], PAYLOAD_TYPE));
  });

const TOKENS =
  '" \\ { } [ ] : , = null 1e999 -0 1.0 "keys": "roots":[] "keyset":{} "sig":"" "__proto__":0, \\u0061 \\ud83d \\ud83d\\ude00 e30= A Q== / _ é \uFEFF \u0000'.split(
    ' ',
  );

/** The text, rarely after an edit. */
const edited = (text: string): fc.Arbitrary<string> =>
  fc.oneof(
    { arbitrary: fc.constant(text), weight: 20 },
    {
      arbitrary: fc
        .tuple(fc.nat({ max: text.length }), fc.nat({ max: 2 }), fc.constantFrom(...TOKENS))
        .map(([at, removed, token]) => text.slice(0, at) + token + text.slice(at + removed)),
      weight: 1,
    },
  );

const texts = (one: Json): fc.Arbitrary<string> => edited(JSON.stringify(one));

const vector: fc.Arbitrary<Vector> = chain.chain((roots) =>
  fc
    .record({
      keyset: document(roots).chain(texts),
      held: fc.option(document(roots).chain(texts)),
      pin: fc.option(fc.constantFrom(...roots.map(fingerprintOf), leaseA.jwk.kid), { freq: 1 }),
      lease: fc.option(lease.chain(edited), { freq: 4 }),
      use: fc.record(
        {
          product: fc.constantFrom('trader', 'viewer'),
          device_thumbprints: fc.subarray([rootA.jwk.kid, rootB.jwk.kid]),
          machine_hash: fc.constantFrom(rootA.jwk.kid, rootB.jwk.kid),
        },
        { requiredKeys: [] },
      ),
      now: fc.constantFrom(
        '2026-01-05T09:00:00Z',
        '2026-01-05T09:30:00Z',
        '2026-01-06T00:00:01Z',
        '2026-01-12T09:30:00Z',
        '2026-01-15T09:30:00Z',
        '2027-06-01T00:00:00Z',
      ),
    })
    .map((given) => ({ name: '', ...given, ...verdictOf(given) })),
);

function verdictOf(given: Omit<Vector, 'name' | 'state' | 'reason'>) {
  const { state, reason } = judge({ name: '', reason: null, ...given });
  return { state, reason };
}

const seed = Number(process.env['SERVICE_LOCAL_TEST_SEED']);
const cases = fc
  .sample(vector, { numRuns: CASES, seed })
  .map((one, index) => ({ ...one, name: `case ${index} of seed ${seed}` }));

const STATES = ['expired', 'grace', 'refused', 'trusted', 'valid'];

test('the cases reach all states, and refusals of every kind', () => {
  const reached = new Set(cases.map(({ state, reason }) => `${state} ${reason}`));
  expect([...new Set(cases.map(({ state }) => state))].sort()).toEqual(STATES);
  expect(reached.size, [...reached].sort().join()).toBeGreaterThan(20);
});

const [python, go] = VERIFIERS;
const agreement = `${CASES} of ${CASES} vectors agree\n`;

describe.skipIf(python.isMissing)(`examples/verify/${python.title}`, () => {
  test('judges every case as the issuer does', () => {
    expect(judgeAll(python, cases)).toBe(agreement);
  });
});

describe.skipIf(go.isMissing)(`examples/verify/${go.title}`, () => {
  test('judges every case as the issuer does', () => {
    expect(judgeAll(go, cases)).toBe(agreement);
  });
});
