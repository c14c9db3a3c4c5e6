/**
 * Test vectors for verifiers in any language: `examples/verify/vectors.json`, which the package
 * contains. `node test/lease/make-vectors.ts` writes the file; it is the same each time, because
 * Ed25519 is deterministic and the keys are fixed.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { PAYLOAD_TYPE, preAuthEncoding, readEnvelope } from '../../src/lease/envelope.ts';
import { publicKeyId } from '../../src/lease/keys.ts';
import type { LeaseReason } from '../../src/lease/reasons.ts';
import { ROOT_TYPE, rootFingerprint } from '../../src/lease/root.ts';
import type { LeaseStatus } from '../../src/lease/status.ts';
import type { Trust } from '../../src/lease/trust.ts';
import { machineHash, type LeaseUse } from '../../src/lease/use.ts';
import {
  claimsOf,
  issue,
  keysetOf,
  rootOf,
  type LeaseFile,
  seal,
  signingKey,
  type SigningKey,
  testKey,
} from './issuer.ts';
import { formatTime } from '../../src/lease/time.ts';
import { fromHex, L, littleEndian, NOT_CANONICAL, SMALL_ORDER } from './points.ts';

export const VECTORS = join(import.meta.dirname, '../../examples/verify/vectors.json');

/** A license as a verifier finds it, and the outcome. */
export interface Vector {
  readonly name: string;
  /** Content of the keyset file. */
  readonly keyset: string;
  /** Fingerprint of the pinned root. */
  readonly pin: string | null;
  /** Content of a keyset file that was accepted before, on first contact and without a pin. */
  readonly held: string | null;
  /** Content of the lease file; null where the keyset alone is judged. */
  readonly lease: string | null;
  /** The program and machine on which the lease is used. */
  readonly use: LeaseUse;
  readonly now: string;
  /** `trusted` is an accepted keyset without a lease. */
  readonly state: LeaseStatus['state'] | 'trusted' | 'refused';
  readonly reason: LeaseReason | null;
  readonly by?: Trust['by'];
  /** Claims of an accepted lease, where these are tested. */
  readonly claims?: LeaseClaims;
}

export interface Vectors {
  readonly about: string;
  readonly vectors: readonly Vector[];
}

/** A lease under the keys of `KEYSET`, and why it is refused. */
interface LeaseVector {
  readonly name: string;
  readonly lease: string;
  readonly reason: LeaseReason | null;
  readonly claims?: LeaseClaims;
}

interface KeysetVector {
  readonly name: string;
  readonly keyset: unknown;
  readonly reason: LeaseReason | null;
}

interface TrustVector {
  readonly name: string;
  readonly document: unknown;
  readonly pin: string | null;
  readonly held: unknown;
  readonly now: string;
  readonly reason: LeaseReason | null;
  readonly by?: Trust['by'];
}

interface UseVector {
  readonly name: string;
  readonly lease: string;
  readonly use: LeaseUse;
  readonly reason: LeaseReason | null;
}

const active = testKey(1);
const retiring = testKey(2);
const stranger = testKey(3);
const revoked = testKey(4);

const claims = claimsOf(active);
const lease = issue(claims, active);
const file = JSON.parse(lease) as LeaseFile;
const payload = Buffer.from(file.payload, 'base64');
const signature = active.sign(preAuthEncoding(PAYLOAD_TYPE, payload));

const KEYSET = JSON.stringify({
  keys: [
    { ...active.jwk, status: 'active' },
    { ...retiring.jwk, status: 'retiring' },
    { ...revoked.jwk, status: 'revoked' },
  ],
});

/** The good lease with parts of its envelope replaced. */
function envelope(change: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ ...file, ...change });
}

/** The good lease under another signature. */
function signedBy(bytes: Iterable<number>, keyid = active.jwk.kid): string {
  const sig = Buffer.from(Uint8Array.from(bytes)).toString('base64');
  return envelope({ signatures: [{ keyid, sig }] });
}

/** A lease that its issuer signed although it should not have. */
function issuedWith(change: Readonly<Record<string, unknown>>): string {
  return seal(JSON.stringify({ ...claims, ...change }), active);
}

const one = (key: SigningKey): unknown =>
  (JSON.parse(issue(claims, key)) as LeaseFile).signatures[0];
const replaced = (text: string, from: string, to: string): string => {
  if (!text.includes(from)) throw new Error(`${from} is not in ${text}`);
  return text.replace(from, to);
};

function good(name: string, says: LeaseClaims, text: string): LeaseVector {
  return { name, lease: text, reason: null, claims: says };
}

function leases(): LeaseVector[] {
  const minimal: LeaseClaims = {
    lease_id: 'lease-2',
    deployment_id: 'deployment-1',
    entitlements: [],
    issued_at: '2026-01-05T09:30:00Z',
    expires_at: '2026-01-05T09:30:01Z',
    grace_ends_at: '2026-01-05T09:30:01Z',
    ttl_seconds: 1,
    grace_period_seconds: 0,
    public_key_id: active.jwk.kid,
    issuer: 'test',
  };
  const full = claimsOf(active, {
    renewal_id: '01890a5d-ac96-774b-bcce-b302099a8057',
    previous_lease_id: 'lease-0',
    device_thumbprint: stranger.jwk.kid,
    product: 'trader',
    binding: 'machine',
    machine_hash: machineHash('b08dfa6083e7567a1921a715000001fb'),
  });
  const byRetiring = claimsOf(retiring);
  const extended = JSON.stringify({ ...claims, note: 'für später', more: [{ a: 1 }] }, null, 1);
  const invalid = (change: Readonly<Record<string, unknown>>, what: string): LeaseVector => ({
    name: `claims: ${what}`,
    lease: issuedWith(change),
    reason: 'invalid_claims',
  });
  const refused: readonly (readonly [reason: LeaseReason, name: string, lease: string])[] = [
    ['not_json', 'empty file', ''],
    ['not_json', 'cut short', lease.slice(0, -1)],
    ['not_json', 'something after the end', `${lease}x`],
    ['not_json', 'byte order mark', `\uFEFF${lease}`],
    ['not_json', 'signed payload that is not JSON', seal('lease', active)],
    ['not_json', 'half a surrogate pair', replaced(lease, '"keyid":"', '"keyid":"\\udc00')],
    [
      'not_json',
      'half a surrogate pair in the name of a signed member',
      seal(replaced(JSON.stringify(claims), '{', '{"\\ud83d":0,'), active),
    ],
    ['nested_too_deep', 'envelope', envelope({ payload: nested(16) })],
    ['nested_too_deep', 'signed payload', issuedWith({ note: nested(16) })],
    ['duplicate_member', 'envelope', replaced(lease, '{', '{"payload":"",')],
    ['duplicate_member', 'signature', replaced(lease, '"sig":', '"sig":"","sig":')],
    ['duplicate_member', 'spelt with an escape', replaced(lease, '{', '{"p\\u0061yload":"",')],
    [
      'duplicate_member',
      'signed payload',
      seal(replaced(JSON.stringify(claims), '{', '{"lease_id":"lease-9",'), active),
    ],
    ['forbidden_member', 'envelope', replaced(lease, '{', '{"__proto__":{},')],
    [
      'forbidden_member',
      'signed payload',
      seal(replaced(JSON.stringify(claims), '{', '{"__proto__":{"customer_id":"x"},'), active),
    ],
    ['not_utf8', 'signed payload', seal(Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), active)],

    ['not_an_envelope', 'a list', `[${lease}]`],
    ['not_an_envelope', 'null', 'null'],
    ['not_an_envelope', 'no payload', envelope({ payload: undefined })],
    ['not_an_envelope', 'payload that is not a text', envelope({ payload: claims })],
    ['not_an_envelope', 'one member more', envelope({ comment: '' })],
    ['not_an_envelope', 'no signature', envelope({ signatures: [] })],
    ['not_an_envelope', 'signature that is a text', envelope({ signatures: ['x'] })],
    ['not_an_envelope', 'signature without key', envelope({ signatures: [{ sig: '' }] })],
    ['not_an_envelope', 'the same key twice', envelope({ signatures: [one(active), one(active)] })],
    [
      'not_an_envelope',
      'five signatures',
      envelope({ signatures: [1, 3, 5, 6, 7].map((byte) => one(testKey(byte))) }),
    ],
    ['wrong_payload_type', 'of a later version', envelope({ payloadType: `${PAYLOAD_TYPE};v=2` })],
    ['wrong_payload_type', 'any JSON', envelope({ payloadType: 'application/json' })],
    ['bad_base64', 'payload in base64url', envelope({ payload: '-_8=' })],
    ['bad_base64', 'payload without padding', envelope({ payload: 'e30' })],
    ['bad_base64', 'payload with stray bits', envelope({ payload: 'e31=' })],
    ['bad_base64', 'payload in lines', envelope({ payload: 'e3\n0=' })],
    ['bad_base64', 'signature without padding', replaced(lease, '=="}', '"}')],

    ['unknown_key', 'signed by a stranger', issue(claimsOf(stranger), stranger)],
    ['unknown_key', 'signed by a key that was revoked', issue(claimsOf(revoked), revoked)],
    ['unknown_key', 'key named by another name', signedBy(signature, 'active')],
    ['signature_length', 'cut short', signedBy(signature.slice(0, 63))],
    ['signature_length', 'padded', signedBy([...signature, 0])],
    ['signature_length', 'empty', signedBy([])],
    ['signature_scalar', 'the group order added', signedBy(malleated())],
    [
      'signature_scalar',
      'the group order itself',
      signedBy([...signature.slice(0, 32), ...littleEndian(L)]),
    ],
    [
      'signature_point',
      'y not reduced',
      signedBy([...NOT_CANONICAL.at(-1)!, ...signature.slice(32)]),
    ],
    ['signature_point', 'negative zero', signedBy([...NOT_CANONICAL[0]!, ...signature.slice(32)])],
    ['bad_signature', 'of nothing but zeros', signedBy(new Uint8Array(64))],
    [
      'bad_signature',
      'one claim changed',
      envelope({
        payload: Buffer.from(replaced(payload.toString(), 'live_trading', 'live_tradinG')).toString(
          'base64',
        ),
      }),
    ],
    [
      'bad_signature',
      'by a stranger in the name of the key',
      signedBy(stranger.sign(preAuthEncoding(PAYLOAD_TYPE, payload))),
    ],
    ['bad_signature', 'over the payload alone', signedBy(active.sign(payload))],
    [
      'bad_signature',
      'over the same payload of another type',
      signedBy(active.sign(preAuthEncoding('application/json', payload))),
    ],
    [
      'bad_signature',
      'one good, one by a known key not',
      envelope({
        signatures: [
          one(active),
          { keyid: retiring.jwk.kid, sig: Buffer.from(signature).toString('base64') },
        ],
      }),
    ],

    [
      'invalid_time',
      'fractions of a second',
      issuedWith({ issued_at: '2026-01-05T09:30:00.000Z' }),
    ],
    ['invalid_time', 'an offset', issuedWith({ expires_at: '2026-01-12T10:30:00+01:00' })],
    ['invalid_time', 'the year 0', issuedWith({ issued_at: '0000-01-05T09:30:00Z' })],
    [
      'invalid_time',
      'a day that does not exist',
      issuedWith({ expires_at: '2026-02-30T09:30:00Z' }),
    ],
    ['invalid_time', 'a number', issuedWith({ grace_ends_at: 1768469400 })],
    ['inconsistent_claims', 'a later end', issuedWith({ expires_at: '2026-01-12T09:30:01Z' })],
    ['inconsistent_claims', 'a longer TTL', issuedWith({ ttl_seconds: 604_801 })],
    [
      'inconsistent_claims',
      'a longer grace',
      issuedWith({ grace_ends_at: '2027-01-15T09:30:00Z' }),
    ],
    ['key_mismatch', 'names another key of the set', issue(byRetiring, active)],
    ['key_mismatch', 'names a stranger', issue(claimsOf(stranger), active, retiring)],
  ];
  return [
    good('as issued', claims, lease),
    good('with all claims', full, issue(full, active)),
    good('with as few claims as possible', minimal, issue(minimal, active)),
    good('by the retiring key', byRetiring, issue(byRetiring, retiring)),
    good('also signed by a key yet unknown', claims, issue(claims, stranger, active)),
    good(
      'whole numbers in other forms, and pairs of surrogates',
      claims,
      seal(
        JSON.stringify({ ...claims, note: '😀' })
          .replace('604800', '6048e2')
          .replace('259200', '259200.0')
          .replace('😀', '\\ud83d\\ude00 \\\\ud83d'),
        active,
      ),
    ),
    good('signed by both keys', claims, issue(claims, retiring, active)),
    good('in lines, members in another order', claims, reordered()),
    good('with claims of a later issuer, not canonical', claims, seal(extended, active)),
    ...refused.map(([reason, name, text]) => ({ name, lease: text, reason })),
    { name: 'claims: a list', lease: seal('[]', active), reason: 'invalid_claims' },
    invalid({ lease_id: undefined }, 'no lease_id'),
    invalid({ lease_id: '' }, 'empty lease_id'),
    invalid({ deployment_id: 'a b' }, 'space in an id'),
    invalid({ deployment_id: 7 }, 'id that is a number'),
    invalid({ customer_id: null }, 'null for an absent claim'),
    invalid({ customer_id: 'x'.repeat(129) }, 'id too long'),
    invalid({ issuer: 'für mich' }, 'id not in ASCII'),
    invalid({ entitlements: 'live_trading' }, 'entitlements that are a text'),
    invalid({ entitlements: ['live_trading', 'live_trading'] }, 'the same entitlement twice'),
    invalid({ entitlements: ['Live Trading'] }, 'entitlement of a wrong form'),
    invalid({ entitlements: Array.from({ length: 65 }, (_, i) => `e${i}`) }, '65 entitlements'),
    invalid({ ttl_seconds: '604800' }, 'TTL that is a text'),
    invalid({ ttl_seconds: 604_800.5 }, 'TTL with a fraction'),
    invalid({ ttl_seconds: 0 }, 'TTL of zero'),
    invalid({ grace_period_seconds: -1 }, 'negative grace'),
    invalid({ device_thumbprint: 'x' }, 'thumbprint too short'),
    invalid({ product: 'a b' }, 'space in a product'),
    invalid({ binding: 'hardware' }, 'unknown binding'),
    invalid({ binding: 'device' }, 'bound to a device without device_thumbprint'),
    invalid({ binding: 'machine' }, 'bound to a machine without machine_hash'),
    invalid({ machine_hash: 'x' }, 'machine hash too short'),
    invalid(
      { ...claimsOf(active, { ttl_seconds: 158_112_000, grace_period_seconds: 1 }) },
      'more than five years',
    ),
  ];
}

function nested(levels: number): unknown {
  return levels === 0 ? 0 : [nested(levels - 1)];
}

function malleated(): Uint8Array {
  const scalar = BigInt(`0x${Buffer.from(signature.slice(32).toReversed()).toString('hex')}`);
  return new Uint8Array([...signature.slice(0, 32), ...littleEndian(scalar + L)]);
}

function reordered(): string {
  const entries = Object.entries(file).toReversed();
  return `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`;
}

/** A JWK of any 32 bytes, with the id that they would have. */
function jwkOf(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const x = Buffer.from(bytes).toString('base64url');
  return { kty: 'OKP', crv: 'Ed25519', x, kid: publicKeyId(x) };
}

function keysets(): KeysetVector[] {
  const { jwk } = active;
  const rfc8037 = signingKey(
    fromHex('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'),
  ).jwk;
  const of = (
    name: string,
    reason: LeaseReason | null,
    ...keys: readonly unknown[]
  ): KeysetVector => ({ name, keyset: { keys }, reason });
  return [
    of('one key', null, jwk),
    of('the key and thumbprint of RFC 8037 A.3', null, {
      ...rfc8037,
      kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
    }),
    of(
      'keys of other types, and unknown members',
      null,
      { ...jwk, use: 'sig', alg: 'EdDSA', note: '' },
      { kty: 'RSA', n: 'AQAB', e: 'AQAB' },
      { kty: 'OKP', crv: 'X25519', x: jwk.x },
    ),
    { name: 'no object', keyset: [jwk], reason: 'invalid_keyset' },
    { name: 'no list', keyset: { keys: jwk }, reason: 'invalid_keyset' },
    of('no key', 'invalid_keyset'),
    of('a key that is a text', 'invalid_keyset', jwk.x),
    of('no key that may verify', 'invalid_keyset', { ...jwk, status: 'revoked' }),
    of('the same key twice', 'invalid_keyset', jwk, jwk),
    of('no x', 'invalid_keyset', { ...jwk, x: undefined }),
    of('31 bytes', 'invalid_keyset', jwkOf(active.bytes.slice(1))),
    of('x with padding', 'bad_base64', { ...jwk, x: `${jwk.x}=` }),
    of('x with stray bits', 'bad_base64', { ...jwk, x: jwk.x.replace(/.$/, '9') }),
    of('a private key', 'private_key', { ...jwk, d: Buffer.alloc(32, 1).toString('base64url') }),
    of('the id of another key', 'key_id_mismatch', { ...jwk, kid: retiring.jwk.kid }),
    of('no id', 'key_id_mismatch', { ...jwk, kid: undefined }),
    of('y not reduced', 'key_not_canonical', jwkOf(NOT_CANONICAL.at(-1)!)),
    of('negative zero', 'key_not_canonical', jwkOf(NOT_CANONICAL[0]!)),
    of('not on the curve', 'key_not_on_curve', jwkOf(littleEndian(2n))),
    ...SMALL_ORDER.map(([order, encoding], index) =>
      of(`small order ${order}, ${index}`, 'key_small_order', jwkOf(encoding)),
    ),
  ];
}

function uses(): UseVector[] {
  const [device, otherDevice] = [stranger.jwk.kid, retiring.jwk.kid];
  const machine = machineHash('b08dfa6083e7567a1921a715000001fb');
  const otherMachine = machineHash('00000000000000000000000000000001');
  const vector = (
    reason: LeaseReason | null,
    name: string,
    change: Partial<LeaseClaims>,
    use: LeaseUse,
  ): UseVector => ({ name, lease: issue(claimsOf(active, change), active), use, reason });
  const forDevice = { binding: 'device', device_thumbprint: device } as const;
  const forMachine = { binding: 'machine', machine_hash: machine } as const;
  return [
    vector(null, 'without product and binding', {}, { product: 'trader' }),
    vector(null, 'its product', { product: 'trader' }, { product: 'trader' }),
    vector(null, 'any product', { product: 'trader' }, {}),
    vector('other_product', 'another product', { product: 'viewer' }, { product: 'trader' }),
    vector(null, 'not bound', { binding: 'none', device_thumbprint: device }, {}),
    vector(null, 'its device', forDevice, { device_thumbprints: [otherDevice, device] }),
    vector('no_device_key', 'no device key', forDevice, { machine_hash: machine }),
    vector('other_device', 'another device', forDevice, { device_thumbprints: [otherDevice] }),
    vector(null, 'its machine', forMachine, { machine_hash: machine }),
    vector('no_machine_id', 'no machine id', forMachine, { device_thumbprints: [device] }),
    vector('other_machine', 'another machine', forMachine, { machine_hash: otherMachine }),
  ];
}

function fingerprintOf(root: unknown): string {
  return rootFingerprint(readEnvelope(root, ROOT_TYPE, 'the root').payload);
}

function trust(): TrustVector[] {
  const [first, second, foreign] = [testKey(11), testKey(12), testKey(13)];
  const root = rootOf([first]);
  const next = rootOf([second], { by: [first, second], version: 2 });
  const otherRoot = rootOf([foreign]);
  const bare = { keys: [active.jwk] };
  const document = (roots: readonly unknown[], keyset: unknown): unknown => ({ roots, keyset });
  const signed = document([root], keysetOf([active], [first]));
  const rotated = document([root], keysetOf([active, retiring], [first], { version: 2 }));
  const rerooted = document([root, next], keysetOf([active], [second], { version: 2 }));
  const pin = fingerprintOf(root);
  const [now, late] = ['2026-06-01T00:00:00Z', '2027-06-01T00:00:00Z'];
  const firstKeyset = keysetOf([active], [first, active], { root: pin }) as LeaseFile;
  const vector = (
    reason: LeaseReason | null,
    name: string,
    given: unknown,
    change: Partial<TrustVector> = {},
  ): TrustVector => ({ name, document: given, pin: null, held: null, now, reason, ...change });
  const tampered = JSON.parse(JSON.stringify(signed)) as { keyset: LeaseFile };
  const other = JSON.parse(JSON.stringify(rotated)) as { keyset: LeaseFile };
  tampered.keyset = { ...tampered.keyset, payload: other.keyset.payload };
  return [
    vector(null, 'bare keys on first contact', bare, { by: 'first_contact' }),
    vector(null, 'signed keys on first contact', signed, { by: 'first_contact' }),
    vector(null, 'signed keys under a pin', signed, { pin, by: 'pin' }),
    vector(null, 'the same keys again', signed, { held: signed, by: 'held' }),
    vector(null, 'a key more, signed by the root', rotated, { held: signed, by: 'held' }),
    vector(null, 'a new root, signed by the former one', rerooted, {
      pin,
      held: signed,
      by: 'pin',
    }),
    vector(null, 'a pin to a later root than the held one', rerooted, {
      pin: fingerprintOf(next),
      held: signed,
      by: 'pin',
    }),
    vector(null, 'an expired keyset without a new key', signed, {
      held: signed,
      now: late,
      by: 'held',
    }),
    vector(
      null,
      'bare keys, signed by a held key',
      { keys: [retiring.jwk], keyset: keysetOf([retiring], [active]) },
      { held: bare, by: 'held' },
    ),
    vector(
      null,
      'a first root, where a held key signed the keyset as well',
      document([root], firstKeyset),
      { held: bare, by: 'held' },
    ),
    vector('not_vouched_for', 'bare keys under a pin', bare, { pin }),
    vector('not_vouched_for', 'bare keys after signed ones', bare, { held: signed }),
    vector('not_vouched_for', 'other bare keys', { keys: [stranger.jwk] }, { held: bare }),
    vector('not_vouched_for', 'a first root that no held key vouches for', signed, { held: bare }),
    vector(
      'not_vouched_for',
      'another first root, with the signature of the held key copied from the real keyset',
      document([otherRoot], {
        ...firstKeyset,
        signatures: [
          ...(keysetOf([active], [foreign], { root: pin }) as LeaseFile).signatures,
          firstKeyset.signatures[1],
        ],
      }),
      { held: bare },
    ),
    vector(
      'not_vouched_for',
      'a first root, where a held key signed a keyset that names no root',
      document([root], keysetOf([active], [first, active])),
      { held: bare },
    ),
    vector(
      'not_vouched_for',
      'a keyset that the root did not sign',
      document([root], keysetOf([stranger], [foreign])),
    ),
    vector(
      'not_vouched_for',
      'a root that the former one did not sign',
      document([root, rootOf([foreign], { version: 2 })], keysetOf([active], [foreign])),
    ),
    vector(
      'not_vouched_for',
      'fewer signatures than the threshold',
      document([rootOf([first, second], { threshold: 2 })], keysetOf([active], [first])),
    ),
    vector('bad_signature', 'a keyset changed after it was signed', tampered),
    vector(
      'other_root',
      'another root than the pinned one',
      document([otherRoot], keysetOf([active], [foreign])),
      { pin },
    ),
    vector(
      'other_root',
      'another root than the held one',
      document([otherRoot], keysetOf([active], [foreign])),
      { held: signed },
    ),
    vector('root_rollback', 'an older root', rotated, { held: rerooted }),
    vector(
      'root_rollback',
      'a chain that skips a version',
      document(
        [root, rootOf([second], { by: [first, second], version: 3 })],
        keysetOf([active], [second]),
      ),
    ),
    vector('keyset_rollback', 'an older keyset', signed, { held: rotated }),
    vector(
      'keyset_rollback',
      'another keyset of the same version',
      document([root], keysetOf([active, stranger], [first])),
      { held: signed },
    ),
    vector(
      'keyset_rollback',
      'an older keyset without a root, signed by a key that is still held',
      { keys: [retiring.jwk], keyset: keysetOf([revoked, retiring], [revoked, retiring]) },
      {
        held: {
          keys: [active.jwk, retiring.jwk],
          keyset: keysetOf([active, retiring], [retiring], { version: 2 }),
        },
      },
    ),
    vector('keyset_expired', 'an expired keyset on first contact', signed, { now: late }),
    vector('keyset_expired', 'an expired keyset that adds a key', rotated, {
      held: signed,
      now: late,
    }),
    vector(
      'other_issuer',
      'a keyset of another issuer',
      document([root], keysetOf([active], [first], { issuer: 'test' })),
    ),
    vector('invalid_root', 'roots as a text', {
      roots: JSON.stringify([root]),
      keyset: keysetOf([active], [first]),
    }),
    vector('invalid_root', 'no roots', document([], keysetOf([active], [first]))),
    vector('wrong_payload_type', 'a root in the place of the keyset', document([root], root)),
    vector('not_an_envelope', 'no keyset', { roots: [root] }),
  ];
}

/** Leases at different times, and the attacks that a verifier must withstand, from file to state. */
function wholes(): Vector[] {
  const [rootKey, foreign] = [testKey(11), testKey(13)];
  const root = rootOf([rootKey]);
  const keyset = (keys: readonly SigningKey[], version: number): string =>
    JSON.stringify({ roots: [root], keyset: keysetOf(keys, [rootKey], { version }) });
  const own = keyset([active], 2);
  const pin = fingerprintOf(root);
  const otherRoot = { roots: [rootOf([foreign])], keyset: keysetOf([stranger], [foreign]) };
  const vector = (
    state: Vector['state'],
    reason: LeaseReason | null,
    name: string,
    change: Partial<Vector> = {},
  ): Vector => ({
    name,
    keyset: own,
    pin,
    held: own,
    lease,
    use: {},
    now: claims.issued_at,
    state,
    reason,
    ...change,
  });
  const [expires, ends] = [claims.expires_at, claims.grace_ends_at];
  const forMachine = claimsOf(active, { binding: 'machine', machine_hash: machineHash('1') });
  return [
    vector('valid', null, 'valid until it expires', { now: before(expires) }),
    vector('grace', 'in_grace', 'in grace from its expiry', { now: expires }),
    vector('grace', 'in_grace', 'in grace until its grace ends', { now: before(ends) }),
    vector('expired', 'expired', 'expired from the end of its grace', { now: ends }),
    vector('valid', null, 'a clock 300 s behind the issue', { now: '2026-01-05T09:25:00Z' }),
    vector('grace', 'not_yet_valid', 'a clock 301 s behind the issue', {
      now: '2026-01-05T09:24:59Z',
    }),
    vector('refused', 'bad_signature', 'forged lease', {
      lease: envelope({
        payload: Buffer.from(payload.toString().replace('live', 'paper')).toString('base64'),
      }),
    }),
    vector('refused', 'unknown_key', 'lease signed by a key of the forger', {
      lease: issue(claimsOf(stranger), stranger),
    }),
    vector('refused', 'keyset_rollback', 'rolled-back keyset', {
      keyset: keyset([active, revoked], 1),
    }),
    vector('refused', 'other_root', 'keyset, lease and root of the forger', {
      keyset: JSON.stringify(otherRoot),
      lease: issue(claimsOf(stranger), stranger),
    }),
    vector('refused', 'other_root', 'the same with a pin and nothing held', {
      keyset: JSON.stringify(otherRoot),
      lease: issue(claimsOf(stranger), stranger),
      held: null,
    }),
    vector('refused', 'not_vouched_for', 'bare keys of the forger in the place of the keyset', {
      keyset: JSON.stringify({ keys: [stranger.jwk] }),
      lease: issue(claimsOf(stranger), stranger),
    }),
    vector('refused', 'other_machine', 'lease copied to another machine', {
      lease: issue(forMachine, active),
      use: { machine_hash: machineHash('2') },
    }),
    vector('valid', null, 'lease on the machine to which it is bound', {
      lease: issue(forMachine, active),
      use: { machine_hash: machineHash('1') },
    }),
    vector('refused', 'other_machine', 'expired lease copied to another machine', {
      lease: issue(forMachine, active),
      use: { machine_hash: machineHash('2') },
      now: ends,
    }),
  ];
}

/** One second earlier. */
function before(time: string): string {
  return formatTime(Date.parse(time) - 1000);
}

export function makeVectors(): Vectors {
  const usual = { keyset: KEYSET, pin: null, held: null, use: {}, now: claims.issued_at };
  const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
  return {
    about:
      'Test vectors for verifiers of license leases; see README.md. Every key in this file is a test ' +
      'key with a known secret (32 times the same byte) or is not a usable key. Do not trust them.',
    vectors: [
      ...wholes(),
      ...leases().map((given): Vector => ({
        ...usual,
        ...given,
        use: { machine_hash: given.claims?.machine_hash },
        name: `lease: ${given.name}`,
        state: given.reason === null ? 'valid' : 'refused',
      })),
      ...keysets().map((given): Vector => ({
        ...usual,
        ...given,
        name: `keyset: ${given.name}`,
        keyset: JSON.stringify(given.keyset),
        lease: null,
        state: given.reason === null ? 'trusted' : 'refused',
      })),
      ...trust().map(({ document, held, ...given }): Vector => ({
        ...usual,
        ...given,
        name: `trust: ${given.name}`,
        keyset: JSON.stringify(document),
        held: text(held),
        lease: null,
        state: given.reason === null ? 'trusted' : 'refused',
      })),
      ...uses().map((given): Vector => ({
        ...usual,
        ...given,
        name: `use: ${given.name}`,
        state: given.reason === null ? 'valid' : 'refused',
      })),
    ],
  };
}

/** The text of the file: one vector on each line. */
export function vectorsText({ about, vectors }: Vectors): string {
  const lines = vectors.map((vector) => JSON.stringify(vector));
  return `{"about":${JSON.stringify(about)},"vectors":[\n${lines.join(',\n')}\n]}\n`;
}

if (import.meta.main) writeFileSync(VECTORS, vectorsText(makeVectors()));
