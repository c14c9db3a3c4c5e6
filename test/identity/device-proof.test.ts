import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newDeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof } from '../../src/client/device-proof.ts';
import {
  checkDeviceProof,
  type CheckedProof,
  checkPossession,
  deferProofs,
  ProofRefusal,
  type ProofReason,
  useDeviceProof,
} from '../../src/identity/device-proof.ts';
import { purgeDevices, revokeDevice } from '../../src/identity/devices.ts';
import { PROOF_TYPE } from '../../src/base/proof-claims.ts';
import { type SigningKey, signingKey, testKey } from '../lease/issuer.ts';
import { L, littleEndian, NOT_CANONICAL, SMALL_ORDER } from '../lease/points.ts';
import { mainlyOn } from '../storage/databases.ts';
import { runs } from '../length.ts';
import { claimsFor, enrolled, newVendor, ORIGIN, requestOf, seal, signerOf } from './devices.ts';
import type { World } from './people.ts';

const FEW = 63;

const stranger = testKey(9);
const request = requestOf();
const AUDIENCES = ['https://other.example', ORIGIN];
const MINUTE = 60_000;

const refusal = (reason: ProofReason, more: object = {}): object =>
  expect.objectContaining({
    name: 'ProofRefusal',
    code: 'invalid_device_proof',
    reason,
    message: expect.stringMatching(/^.{5,300}$/) as string,
    remedy: expect.stringMatching(/\.$/) as string,
    ...more,
  }) as object;

describe.each(mainlyOn('sqlite'))('device proofs on %s', (kind) => {
  let world: World;
  /** Keys of two devices; new in each test. */
  let key: SigningKey;
  let other: SigningKey;

  beforeAll(async () => {
    world = await newVendor(kind);
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    [key, other] = [signingKey(randomBytes(32)), signingKey(randomBytes(32))];
    await enrolled(world, key, 'tokyo');
    await enrolled(world, other, 'tokyo');
  });

  const proofOf = (change?: Record<string, unknown>, header?: Record<string, unknown>): string =>
    seal(key, claimsFor(key, request, world.now, change), header);
  const check = (proof: string, of = request): Promise<CheckedProof> =>
    checkDeviceProof(world.identity, proof, of, AUDIENCES);
  const take = (checked: CheckedProof, { storage, clock } = world.identity): Promise<unknown> =>
    storage.write((tx) => useDeviceProof(tx, clock(), checked));
  const accept = async (proof: string, of = request): Promise<unknown> =>
    take(await check(proof, of));
  const seconds = (): number => Math.floor(world.now / 1000);
  const nonceFor = async (signer: SigningKey = key): Promise<string> => {
    const claims = claimsFor(signer, request, world.now - 600 * MINUTE);
    const error: unknown = await check(seal(signer, claims)).catch((thrown: unknown) => thrown);
    expect(error).toEqual(refusal('use_nonce'));
    return (error as ProofRefusal).nonce!;
  };
  const countUsed = async (): Promise<number> => {
    const rows = await world.identity.storage.read
      .selectFrom('used_proofs')
      .select('device_id')
      .where('device_id', 'in', [key.jwk.kid, other.jwk.kid])
      .execute();
    return rows.length;
  };

  test('proofs and nonces from before a restore are refused', async () => {
    const [proof, nonce] = [proofOf(), await nonceFor()];
    await world.identity.storage.write((tx) => deferProofs(tx, world.now));
    await expect(check(proof)).rejects.toEqual(refusal('use_nonce'));
    await expect(check(proofOf({ nonce }))).rejects.toEqual(refusal('unknown_nonce'));
    await accept(proofOf({ nonce: await nonceFor() }));
    world.now += 2 * MINUTE;
    await expect(check(proof)).rejects.toEqual(refusal('use_nonce'));
    await accept(proofOf());
  });

  test('a proof identifies the device', async () => {
    const device = { device_id: key.jwk.kid, deployment_id: 'tokyo', x: key.jwk.x };
    expect(await check(proofOf())).toMatchObject({ device });
    expect(await accept(proofOf())).toMatchObject(device);
    const proof = proofOf({ aud: AUDIENCES[0], htu: `${AUDIENCES[0]}/auth/license/leases` });
    expect(await accept(proof), 'known under another origin').toMatchObject(device);
  });

  test('proofs that the client creates are accepted', async () => {
    const device = newDeviceKey();
    const { device_id, x } = device;
    await enrolled(world, signerOf(device), 'tokyo');
    const make = (now: number, nonce?: string): string =>
      makeDeviceProof(device, request, now, nonce);
    expect(await accept(make(world.now))).toMatchObject({ device_id, x });
    expect(await accept(make(world.now)), 'the next').toMatchObject({ device_id });
    const nonce = await nonceFor(signerOf(device));
    expect(await accept(make(0, nonce))).toMatchObject({ device_id });
  });

  test.each<[ProofReason, string, Record<string, unknown>]>([
    ['wrong_audience', 'another server', { aud: 'https://licenses.example.evil' }],
    ['wrong_audience', 'a URL for an origin', { aud: `${ORIGIN}/` }],
    ['wrong_audience', 'no audience known', { aud: 'null' }],
    ['wrong_method', 'another method', { htm: 'GET' }],
    ['wrong_method', 'small letters', { htm: 'post' }],
    ['wrong_url', 'another path', { htu: `${ORIGIN}/auth/license/devices` }],
    ['wrong_url', 'the query', { htu: `${ORIGIN}/auth/license/leases?q=1` }],
    ['wrong_url', 'another origin of this server', { htu: `${AUDIENCES[0]}/auth/license/leases` }],
    ['body_changed', 'no body', { bh: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU' }],
    ['body_changed', 'no hash', { bh: '' }],
    ['lifetime', 'no end', { exp: undefined }],
    ['malformed', 'an end that is a text', { exp: '1' }],
    ['malformed', 'a beginning between seconds', { iat: 1.5 }],
    ['malformed', 'a beginning beyond all numbers', { iat: 1e300 }],
    ['malformed', 'no beginning', { iat: undefined }],
    ['malformed', 'no jti', { jti: undefined }],
    ['malformed', 'half a surrogate pair in its nonce', { nonce: '\ud800' }],
    ['malformed', 'a jti that is no UUID', { jti: 'a\0' }],
    ['malformed', 'several audiences', { aud: [ORIGIN] }],
    ['malformed', 'no body hash', { bh: undefined }],
    ['malformed', 'another issuer', { iss: stranger.jwk.kid }],
    ['malformed', 'another subject', { sub: stranger.jwk.kid }],
    ['malformed', 'a nonce that is no text', { nonce: 1 }],
  ])('are refused as %s: %s', async (reason, _, change) => {
    await expect(check(proofOf(change))).rejects.toEqual(refusal(reason));
  });

  test('a proof for another request is refused', async () => {
    const proof = proofOf();
    const cases: [ProofReason, Partial<typeof request>][] = [
      ['wrong_method', { method: 'PUT' }],
      ['wrong_url', { url: `${ORIGIN}/auth/license/lease` }],
      ['wrong_url', { url: `${ORIGIN}/auth/license/leases/` }],
      ['body_changed', { body: Buffer.from('{"a":2}') }],
    ];
    for (const [reason, change] of cases) {
      await expect(check(proof, { ...request, ...change })).rejects.toEqual(refusal(reason));
    }
    await expect(checkDeviceProof(world.identity, proof, request, [])).rejects.toEqual(
      refusal('wrong_audience'),
    );
    const elsewhere = { ...request, url: 'http://10.0.0.1:8787/auth/license/leases?x' };
    expect(await check(proof, elsewhere), 'behind a proxy').toMatchObject({});
  });

  test.each<[string, Record<string, unknown>]>([
    ['another type', { typ: 'JWT' }],
    ['no type', { typ: undefined }],
    ['no algorithm', { alg: 'none' }],
    ['another name of the algorithm', { alg: 'Ed25519' }],
    ['another algorithm', { alg: 'HS256' }],
    ['no key', { kid: undefined }],
    ['something critical', { crit: ['exp'], exp: 1 }],
    ['the one critical thing that the library knows', { crit: ['b64'], b64: true }],
    ['nothing critical', { crit: [] }],
    ['a key that is no id', { kid: '../../etc/passwd' }],
  ])('are refused as malformed: a header with %s', async (_, header) => {
    await expect(check(proofOf({}, header))).rejects.toEqual(refusal('malformed'));
  });

  test('a key in the header of a proof is ignored', async () => {
    const claims = claimsFor(key, request, world.now);
    const header = { kid: key.jwk.kid, jwk: other.jwk, jku: `${ORIGIN}/x`, x5c: [''] };
    await expect(check(seal(other, claims, header))).rejects.toEqual(refusal('bad_signature'));
  });

  test('malformed proofs of any form are refused', async () => {
    const good = proofOf();
    const [header, claims, signature] = good.split('.') as [string, string, string];
    const cases = [
      '',
      '..',
      `${header}.${claims}`,
      `${good}.`,
      `${good} `,
      `${header}.${claims}=.${signature}`,
      `${header}.${claims}.${signature.slice(0, -1)}${signature.endsWith('A') ? 'B' : 'A'}x`,
      `${header}.${claims}.+${signature.slice(1)}`,
      `${header}.${claims}.\u{1f511}`,
      good.padEnd(4097, 'A'),
      seal(key, '{"a":1'),
      seal(key, '[]'),
      seal(key, 'null'),
      seal(key, `{"iss":"a","iss":"b"}`),
      seal(key, JSON.stringify(claimsFor(key, request, world.now)).replace('{', '{"jti":"x",')),
      seal(key, '\ufeff{}'),
      seal(key, '{"__proto__":{}}'),
      seal(key, claimsFor(key, request, world.now), '[]'),
      seal(key, claimsFor(key, request, world.now), `{"typ":"JWT","typ":"${PROOF_TYPE}"}`),
      `${header}.${Buffer.from([0xff, 0xfe]).toString('base64url')}.${signature}`,
    ];
    for (const proof of cases) {
      await expect(check(proof), proof).rejects.toEqual(refusal('malformed'));
    }
  });

  test('a proof in another base64 spelling is refused', async () => {
    const good = proofOf();
    const last = good.at(-1)!;
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const same = alphabet[alphabet.indexOf(last) ^ 1]!;
    expect(Buffer.from(good.slice(0, -1) + same, 'base64url')).toEqual(
      Buffer.from(good, 'base64url'),
    );
    await expect(check(good.slice(0, -1) + same)).rejects.toEqual(refusal('malformed'));
  });

  test('a proof of a device that is not enrolled is refused', async () => {
    const claims = claimsFor(stranger, request, world.now);
    await expect(check(seal(stranger, claims))).rejects.toEqual(refusal('unknown_device'));
    const header = { kid: stranger.jwk.kid };
    await expect(check(seal(key, claims, header))).rejects.toEqual(refusal('unknown_device'));
  });

  test('a proof that another device signed is refused, even if that device is enrolled', async () => {
    const header = { kid: key.jwk.kid };
    const proof = seal(other, claimsFor(key, request, world.now), header);
    await expect(check(proof)).rejects.toEqual(refusal('bad_signature'));
  });

  test('only a proof by its own key reveals that a device was revoked', async () => {
    const before = await check(proofOf());
    await revokeDevice(world.identity, 'operator', key.jwk.kid, 'stolen');
    await expect(check(proofOf())).rejects.toEqual(refusal('revoked_device'));
    await expect(take(before), 'revoked in between').rejects.toEqual(refusal('revoked_device'));
    const proof = seal(other, claimsFor(key, request, world.now), { kid: key.jwk.kid });
    await expect(check(proof)).rejects.toEqual(refusal('bad_signature'));
  });

  test('a proof is valid for at most one minute', async () => {
    const iat = seconds();
    for (const exp of [iat, iat - 1, iat + 61, Number.MAX_SAFE_INTEGER]) {
      await expect(check(proofOf({ exp })), `${exp - iat} s`).rejects.toEqual(refusal('lifetime'));
    }
    expect(await check(proofOf({ exp: iat + 1 }))).toMatchObject({});
    const nonce = await nonceFor();
    await expect(check(proofOf({ exp: iat + 61, nonce }))).rejects.toEqual(refusal('lifetime'));
  });

  test('a proof needs a nonce if the clocks differ by more than a minute or the proof is older', async () => {
    world.now = Math.floor(world.now / 1000) * 1000;
    const outcome = (iatOffset: number, life = 60): Promise<unknown> => {
      const iat = seconds() + iatOffset;
      return check(proofOf({ iat, exp: iat + life })).then(
        () => 'accepted',
        (error: ProofRefusal) => error.reason,
      );
    };
    expect(await outcome(60)).toBe('accepted');
    expect(await outcome(61)).toBe('use_nonce');
    expect(await outcome(-59)).toBe('accepted');
    expect(await outcome(-60), 'at its end').toBe('use_nonce');
    expect(await outcome(-5, 5), 'at its end').toBe('use_nonce');
    expect(await outcome(-5, 6)).toBe('accepted');
  });

  describe('with a wrong clock', () => {
    const clocks = [0, Date.UTC(2100, 0)];

    const fresh = { nonce: expect.stringMatching(/^\d+\.[\w-]{43}$/) as string };

    test.each(clocks)(
      'a proof with the wrong time %i is accepted once with a nonce',
      async (clock) => {
        const nonce = await nonceFor();
        const [one, two] = [1, 2].map(() => seal(key, claimsFor(key, request, clock, { nonce })));
        expect(await accept(one!)).toMatchObject({ device_id: key.jwk.kid });
        await expect(accept(one!)).rejects.toEqual(refusal('replayed'));
        expect(await accept(two!)).toMatchObject({ device_id: key.jwk.kid });
      },
    );

    test('a response to an invented nonce or that of another device contains a new nonce', async () => {
      const nonce = await nonceFor();
      const [end, code] = nonce.split('.') as [string, string];
      const cases = [
        await nonceFor(other),
        `${Number(end) + 1}.${code}`,
        `${end}.${code}.`,
        `${end}0.${code}`,
        `0${nonce}`,
        `${end}.${'A'.repeat(43)}`,
        code,
        `${end}.`,
        '',
        'NaN',
        '\0',
      ];
      for (const madeUp of cases) {
        await expect(check(proofOf({ nonce: madeUp })), madeUp).rejects.toEqual(
          refusal('unknown_nonce', fresh),
        );
      }
      expect(await check(proofOf({ nonce }))).toMatchObject({});
    });

    test('a nonce is valid for five minutes, on all servers', async () => {
      const second = await world.another();
      const nonce = await nonceFor();
      const onSecond = (): Promise<CheckedProof> =>
        checkDeviceProof(second, proofOf({ nonce }), request, AUDIENCES);
      const over = refusal('unknown_nonce', fresh);
      world.now += 5 * MINUTE - 1;
      expect(await onSecond()).toMatchObject({});
      world.now += 1;
      await expect(onSecond()).rejects.toEqual(over);
      world.now -= 6 * MINUTE;
      expect(await onSecond(), 'made by a server whose clock is ahead').toMatchObject({});
      world.now -= 1;
      await expect(onSecond(), 'made before the clock was set back').rejects.toEqual(over);
      world.now += 6 * MINUTE;
    });

    test('servers that create the secret in parallel share one', async () => {
      const empty = await newVendor(kind);
      await enrolled(empty, key, 'tokyo');
      const refused = (): Promise<unknown> =>
        checkDeviceProof(empty.identity, proofOf({ iat: 0, exp: 60 }), request, AUDIENCES).catch(
          (error: ProofRefusal) => error.nonce,
        );
      const [one, two] = await Promise.all([refused(), refused()]);
      expect(one).toMatch(/^\d+\./);
      expect(two).toBe(one);
      await empty.close();
    });

    test('repeating old proofs does not invalidate nonces of the device', async () => {
      const old = proofOf();
      await accept(old);
      world.now += 24 * 60 * MINUTE;
      const nonce = await nonceFor();
      for (let i = 0; i < 20; i += 1) {
        world.now += 1;
        await expect(check(old)).rejects.toEqual(refusal('use_nonce'));
      }
      expect(await accept(seal(key, claimsFor(key, request, 0, { nonce })))).toMatchObject({});
    });

    test('a nonce is returned only for a valid signature and request', async () => {
      const old = world.now - 60 * MINUTE;
      const change = { kid: key.jwk.kid };
      const cases = [
        seal(other, claimsFor(key, request, old), change),
        seal(stranger, claimsFor(stranger, request, old)),
        seal(key, claimsFor(key, request, old, { htm: 'GET' })),
        seal(key, claimsFor(key, request, old, { aud: 'https://evil.example' })),
        seal(key, claimsFor(key, request, old, { exp: undefined })),
      ];
      for (const proof of cases) {
        await expect(check(proof)).rejects.toEqual(expect.objectContaining({ nonce: undefined }));
      }
    });
  });

  test('a proof can be used once', async () => {
    const proof = proofOf();
    const [first, second] = [await check(proof), await check(proof)];
    expect(await take(first)).toMatchObject({ device_id: key.jwk.kid });
    await expect(take(second)).rejects.toEqual(refusal('replayed'));
    await expect(accept(proof)).rejects.toEqual(refusal('replayed'));
  });

  test('two devices can use the same jti once each', async () => {
    const { jti } = claimsFor(key, request, world.now);
    await accept(proofOf({ jti }));
    await expect(accept(proofOf({ jti, exp: seconds() + 5 }))).rejects.toEqual(refusal('replayed'));
    await accept(seal(other, claimsFor(other, request, world.now, { jti })));
  });

  test('a proof stays unused if its transaction fails', async () => {
    const checked = await check(proofOf());
    const work = world.identity.storage.write(async (tx) => {
      await useDeviceProof(tx, world.now, checked);
      throw new Error('no');
    });
    await expect(work).rejects.toThrow('no');
    expect(await take(checked)).toMatchObject({ device_id: key.jwk.kid });
  });

  test.each([
    ['times', 'use_nonce', 2],
    ['a nonce', 'unknown_nonce', 5],
  ] as const)('with %s are remembered until they are too old', async (what, tooOld, minutes) => {
    const made =
      what === 'times'
        ? { iat: seconds() + 60, exp: seconds() + 120 }
        : { iat: 0, exp: 60, nonce: await nonceFor() };
    const proof = proofOf(made);
    await accept(proof);
    const outcomes: unknown[] = [];
    for (let minute = 0; minute < 12; minute += 1) {
      await world.identity.storage.write((tx) => purgeDevices(tx, world.now));
      outcomes.push(await accept(proof).catch((error: ProofRefusal) => error.reason));
      world.now += MINUTE;
    }
    expect(new Set(outcomes.slice(0, minutes))).toEqual(new Set(['replayed']));
    expect(new Set(outcomes.slice(minutes))).toEqual(new Set([tooOld]));
    expect(await countUsed()).toBe(0);
  });

  test('a proof can be used once on two servers in parallel', async () => {
    const second = await world.another();
    const proof = proofOf();
    const checked = await check(proof);
    const again = await checkDeviceProof(second, proof, request, AUDIENCES);
    const outcomes = await Promise.allSettled([take(checked), take(again, second)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: refusal('replayed'),
    });
  });
});

const key = testKey(1);
const other = testKey(2);

describe('signatures that only an attacker makes', () => {
  const claims = claimsFor(key, request, 0);
  const good = seal(key, claims);
  const [, signature] = /\.([^.]*)$/.exec(good)!;
  const bytes = Buffer.from(signature!, 'base64url');
  const withSignature = (changed: Uint8Array): string =>
    good.replace(/[^.]*$/, Buffer.from(changed).toString('base64url'));
  const outcome = (proof: string, x = key.jwk.x): Promise<unknown> =>
    checkPossession(x, proof, request, [ORIGIN]).then(
      () => 'accepted',
      (error: unknown) => (error as ProofRefusal).reason,
    );

  test('a signature with a scalar out of range is refused', async () => {
    const s = BigInt(`0x${Buffer.from(bytes.subarray(32).toReversed()).toString('hex')}`);
    expect(await outcome(good)).toBe('accepted');
    for (const scalar of [s + L, s + 2n * L, s + 8n * L]) {
      const changed = Buffer.concat([bytes.subarray(0, 32), littleEndian(scalar)]);
      expect(await outcome(withSignature(changed))).toBe('bad_signature');
    }
  });

  test('a signature with points that are not canonical or of small order is refused', async () => {
    for (const point of [...NOT_CANONICAL, ...SMALL_ORDER.map(([, encoding]) => encoding)]) {
      for (const scalar of [bytes.subarray(32), littleEndian(0n)]) {
        expect(await outcome(withSignature(Buffer.concat([point, scalar])))).toBe('bad_signature');
      }
    }
  });

  test('a signature of another length is refused', async () => {
    const lengths = [new Uint8Array(), bytes.subarray(0, 63), Buffer.concat([bytes, bytes])];
    for (const changed of [...lengths, Buffer.concat([bytes, Buffer.alloc(1)])]) {
      expect(await outcome(withSignature(changed))).toBe('bad_signature');
    }
  });

  test('a signature by a key that is not enrolled is refused', async () => {
    expect(await outcome(good, other.jwk.x)).toBe('bad_signature');
    expect(await outcome(seal(other, claims, { kid: key.jwk.kid }))).toBe('bad_signature');
  });
});

describe('hostile proofs', () => {
  let world: World;
  let good: string;

  beforeAll(async () => {
    world = await newVendor('sqlite');
    await enrolled(world, key, 'tokyo');
    good = seal(key, claimsFor(key, request, world.now));
  });
  afterAll(() => world.close());

  /** Checks that only the original proof is accepted, and that all others are refused with a reason. */
  async function deceives(input: string): Promise<boolean> {
    try {
      await checkDeviceProof(world.identity, input, request, [ORIGIN]);
      return input !== good;
    } catch (error) {
      return !(error instanceof ProofRefusal && error.reason !== undefined);
    }
  }

  const anyText = fc
    .array(fc.nat({ max: 0xffff }), { maxLength: 10 })
    .map((units) => String.fromCharCode(...units));
  const snippet = fc.constantFrom(
    ...'. = + / - _ A eyJ eyJ9 e30 bnVsbA W10 \0 \ud800 % DeviceProof'.split(' '),
  );
  const edit = fc.record({
    at: fc.nat(),
    removed: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 1000 })),
    inserted: fc.oneof(snippet, anyText, fc.constant('')),
  });
  const edits = fc.array(edit, { minLength: 1, maxLength: 4 });

  test('edited proofs are never accepted', async () => {
    await fc.assert(
      fc.asyncProperty(edits, async (changes) => {
        const input = changes.reduce((text, { at, removed, inserted }) => {
          const start = at % (text.length + 1);
          return text.slice(0, start) + inserted + text.slice(start + removed);
        }, good);
        expect(await deceives(input)).toBe(false);
      }),
      { numRuns: runs(FEW) },
    );
  });

  test('arbitrary texts are never accepted as proofs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          anyText,
          fc.array(fc.base64String(), { maxLength: 5 }).map((all) => all.join('.')),
        ),
        async (input) => {
          expect(await deceives(input)).toBe(false);
        },
      ),
      { numRuns: runs(FEW) },
    );
  });

  test('arbitrary headers and claims are never accepted as proofs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom('typ', 'alg', 'kid', 'crit', 'b64', 'jwk'), fc.jsonValue()),
        fc.dictionary(
          fc.constantFrom(...Object.keys(claimsFor(key, request, 0)), 'nonce'),
          fc.jsonValue(),
        ),
        async (header, change) => {
          const claims = { ...claimsFor(key, request, world.now), ...change };
          // Signed by another key, because the device may sign any claims.
          expect(await deceives(seal(other, claims, { kid: key.jwk.kid, ...header }))).toBe(false);
        },
      ),
      { numRuns: runs(FEW) },
    );
  });

  test('a proof signed by its device is accepted only with valid claims', async () => {
    const nearly = fc.constantFrom<unknown>(0, -1, 1.5, '', null, [], ORIGIN, 'POST', key.jwk.kid);
    const names = Object.keys(claimsFor(key, request, 0));
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom(...names, 'nonce'), fc.oneof(nearly, fc.jsonValue()), {
          minKeys: 1,
        }),
        async (change) => {
          const claims = claimsFor(key, request, world.now);
          const isSame = Object.keys(change).every((name) => change[name] === claims[name]);
          const proof = seal(key, { ...claims, ...change });
          const outcome: unknown = await checkDeviceProof(world.identity, proof, request, [
            ORIGIN,
          ]).catch((error: unknown) => error);
          expect(isSame || outcome instanceof ProofRefusal).toBe(true);
        },
      ),
      { numRuns: runs(FEW) },
    );
  });
});
