import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { materialize } from '../../daemon/materialize.ts';
import { anchorText } from '../../src/gate/anchor.ts';
import { readLicense } from '../../src/gate/license.ts';
import {
  DAY,
  KEY,
  keysetOf,
  leaseOf,
  newLicensePlace,
  NOW,
  type LicensePlace,
} from '../gate/license-place.ts';
import { published } from '../gate/signed-keyset.ts';
import { nodeKey, testKey } from '../lease/issuer.ts';

let place: LicensePlace;
beforeEach(() => {
  place = newLicensePlace();
});
afterEach(() => place.remove());

const LATER = NOW + 4 * DAY;
const run = (lease?: string, keys?: string) =>
  materialize(
    place.files,
    { SERVICE_LICENSE_LEASE: lease, SERVICE_LICENSE_PUBLIC_KEY: keys },
    LATER,
  );
const read = (name: 'lease' | 'keyset'): string => readFileSync(place.files[name], 'utf8');
const heldId = async (): Promise<string | undefined> =>
  (await readLicense(place.files, LATER)).leases[0]?.claims.lease_id;

test('the command writes the injected files once, and finds them unchanged the second time', async () => {
  const first = await run(leaseOf('1'), keysetOf(KEY));
  expect(first).toEqual({ lease: 'written', keyset: 'written' });
  expect(await heldId()).toBe('1');
  expect([read('lease'), read('keyset')]).toEqual([leaseOf('1'), keysetOf(KEY)]);
  expect(await run(leaseOf('1'), keysetOf(KEY))).toMatchObject({ lease: 'same', keyset: 'same' });
});

test.each([
  ['in base64', (text: string) => Buffer.from(text).toString('base64')],
  [
    'in base64 of several lines',
    (text: string) => `${Buffer.from(text).toString('base64').replaceAll(/.{64}/g, '$&\n')}\n`,
  ],
  ['with space around it', (text: string) => `\n ${text}\n`],
])('the command takes a value %s', async (_, written) => {
  const pem = nodeKey(KEY.bytes).export({ type: 'spki', format: 'pem' });
  expect(await run(written(leaseOf('1')), written(pem))).toMatchObject({ lease: 'written' });
  expect(await heldId()).toBe('1');
});

const bundle = (lease: string, keyset: string): string => `{"lease":${lease},"keyset":${keyset}}\n`;

test('the command accepts one file with lease and keyset, whose keys count only without held keys', async () => {
  const first = bundle(leaseOf('1'), keysetOf(KEY));
  expect(await run(first)).toEqual({ lease: 'written', keyset: 'written' });
  expect(await heldId()).toBe('1');
  expect(await run(first)).toEqual({ lease: 'same', keyset: 'not_given' });

  const OTHER = testKey(2);
  const forged = bundle(leaseOf('2', 3, {}, OTHER), keysetOf(OTHER));
  await expect(run(forged)).rejects.toMatchObject({
    code: 'invalid_data',
    reason: 'unknown_key',
    remedy: expect.stringContaining('SERVICE_LICENSE_PUBLIC_KEY') as string,
  });
  expect([await heldId(), read('keyset')]).toEqual(['1', keysetOf(KEY)]);
  expect(await run(forged, forged)).toEqual({ lease: 'written', keyset: 'written' });
  expect(await heldId()).toBe('2');
  expect(await run(first)).toEqual({ lease: 'kept', keyset: 'kept' });
  expect(await heldId()).toBe('2');
});

test('the command keeps a renewed lease when a container restarts with old values', async () => {
  await run(leaseOf('1'), keysetOf(KEY));
  const [renewed, keys] = [leaseOf('2', 3, {}, testKey(2)), keysetOf(testKey(2))];
  place.put(place.files.lease, renewed);
  place.put(place.files.keyset, keys);
  expect(await run(leaseOf('1'), keysetOf(KEY))).toMatchObject({ lease: 'kept', keyset: 'kept' });
  expect(await run(undefined, keysetOf(KEY))).toMatchObject({ lease: 'not_given', keyset: 'kept' });
  expect([read('lease'), read('keyset')]).toEqual([renewed, keys]);
});

test.each([
  ['a signed keyset', published([KEY])],
  ['a bare key', keysetOf(KEY)],
])(
  'a container with %s from before the keys changed keeps what its machine accepted since',
  async (_what, former) => {
    const NEXT = testKey(2);
    const document = published([NEXT], { version: 2 });
    const owner = { installationId: 'deployment-1', issuer: 'https://licenses.example' };
    place.put(place.files.root, anchorText({ ...owner, document }));
    place.put(place.files.keyset, document);
    place.put(place.files.lease, leaseOf('renewed', 2, {}, NEXT));
    expect(await run(leaseOf('1'), former)).toEqual({ lease: 'kept', keyset: 'kept' });
    expect(await run(undefined, former)).toMatchObject({ keyset: 'kept' });
    const newer = leaseOf('2', 3, {}, NEXT);
    expect(await run(newer, former)).toEqual({ lease: 'written', keyset: 'kept' });
    expect([read('lease'), read('keyset')]).toEqual([newer, document]);
    // A better lease by keys that nothing vouches for is no value of long ago.
    await expect(run(leaseOf('3', 3.5), former)).rejects.toMatchObject({
      code: 'invalid_data',
      reason: former.includes('roots') ? 'keyset_rollback' : 'not_vouched_for',
    });
    expect(await heldId()).toBe('2');
  },
);

test('the command replaces the lease by a newer injected one, even under another key', async () => {
  await run(leaseOf('1'), keysetOf(KEY));
  const next = leaseOf('2', 3, {}, testKey(2));
  expect(await run(next, keysetOf(testKey(2)))).toMatchObject({
    lease: 'written',
    keyset: 'written',
  });
  expect(await heldId()).toBe('2');
  expect(await run(leaseOf('3', 4, {}, testKey(2)))).toMatchObject({
    lease: 'written',
    keyset: 'not_given',
  });
  expect(await heldId()).toBe('3');
});

test('the command rejects a lease of another installation while the held one works', async () => {
  await run(leaseOf('1'), keysetOf(KEY));
  const other = { deployment_id: 'elsewhere' };
  for (const days of [-1, 3]) {
    await expect(run(leaseOf('2', days, other), keysetOf(KEY))).rejects.toMatchObject({
      code: 'conflict',
      reason: 'other_deployment',
    });
  }
  expect(read('lease')).toBe(leaseOf('1'));
  place.put(place.files.lease, leaseOf('old', -20));
  place.put(`${place.files.lease}.bak`, leaseOf('old', -20));
  expect(await run(leaseOf('2', 3, other))).toMatchObject({ lease: 'written' });
});

test('the command keeps additional keys in the keyset file', async () => {
  place.put(place.files.keyset, keysetOf(KEY, testKey(2)));
  expect(await run(leaseOf('1'), keysetOf(KEY))).toMatchObject({
    lease: 'written',
    keyset: 'same',
  });
  expect(read('keyset')).toBe(keysetOf(KEY, testKey(2)));
});

test('the command writes keys without a lease if no lease needs the former ones', async () => {
  await run(leaseOf('1'), keysetOf(KEY));
  const more = keysetOf(KEY, testKey(2));
  expect(await run(undefined, more)).toMatchObject({ keyset: 'written' });
  expect(await heldId()).toBe('1');
  expect(await run(undefined, keysetOf(testKey(3)))).toMatchObject({ keyset: 'kept' });
  expect(read('keyset')).toBe(more);
});

test('the command writes keys without a lease on a machine without a lease', async () => {
  expect(await run(undefined, keysetOf(KEY))).toEqual({ lease: 'not_given', keyset: 'written' });
});

test('the command replaces truncated files by the injected ones', async () => {
  await run(leaseOf('1'), keysetOf(KEY));
  writeFileSync(place.files.lease, '');
  expect(await run(leaseOf('1'), keysetOf(KEY))).toMatchObject({ lease: 'written' });
  expect(read('lease')).toBe(leaseOf('1'));
});

test('the command keeps a renewed lease even if its keys are missing', async () => {
  await run(leaseOf('1'), keysetOf(KEY));
  place.put(place.files.lease, leaseOf('2', 3));
  place.put(place.files.keyset, '');
  expect(await run(leaseOf('1'), keysetOf(KEY))).toMatchObject({
    lease: 'kept',
    keyset: 'written',
  });
  expect(await heldId()).toBe('2');
});

test('the command writes an expired lease on a machine without a lease', async () => {
  expect(await run(leaseOf('old', -30), keysetOf(KEY))).toMatchObject({ lease: 'written' });
  expect(await heldId()).toBe('old');
});

test.each([
  ['half of a lease', leaseOf('2', 3).slice(0, 100), keysetOf(KEY), 'not_json'],
  ['a lease by another key', leaseOf('2', 3, {}, testKey(2)), keysetOf(KEY), 'unknown_key'],
  ['half of a keyset', leaseOf('2', 3), keysetOf(KEY).slice(0, 60), 'not_json'],
  ['invalid base64', '%%%%', undefined, 'not_json'],
  ['a private key', undefined, JSON.stringify({ ...KEY.jwk, d: 'a' }), 'private_key'],
])('the command rejects %s, and changes nothing', async (_, lease, keys, reason) => {
  await run(leaseOf('1'), keysetOf(KEY));
  const before = readdirSync(place.home);
  await expect(run(lease, keys)).rejects.toMatchObject({ code: 'invalid_data', reason });
  expect([read('lease'), read('keyset')]).toEqual([leaseOf('1'), keysetOf(KEY)]);
  expect(readdirSync(place.home)).toEqual(before);
});

test('the command rejects a lease without a key that verifies it, and an environment without values', async () => {
  await expect(run(leaseOf('1'))).rejects.toMatchObject({ reason: 'unknown_key' });
  await expect(run(' ', '')).rejects.toMatchObject({ code: 'usage' });
  expect(readdirSync(place.home).filter((name) => name !== 'license.lock')).toEqual([]);
});

test('the command works with a read-only home if both files have other paths', async () => {
  writeFileSync(join(place.home, 'no-directory'), '');
  const files = { ...place.files, lock: join(place.home, 'no-directory', 'license.lock') };
  const env = { SERVICE_LICENSE_LEASE: leaseOf('1'), SERVICE_LICENSE_PUBLIC_KEY: keysetOf(KEY) };
  expect(await materialize(files, env, LATER)).toMatchObject({ lease: 'written' });
});
