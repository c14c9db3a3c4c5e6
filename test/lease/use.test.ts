import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { checkLeaseUse, machineHash } from '../../src/lease/use.ts';
import { verifyLease } from '../../src/lease/verify.ts';
import { claimsOf, seal, testKey, trust } from './issuer.ts';

const key = testKey(1);
const DEVICE = testKey(2).jwk.kid;
const MACHINE = machineHash('b08dfa6083e7567a1921a715000001fb');

const verdictOf = (change: object) =>
  verifyLease(seal(JSON.stringify(claimsOf(key, change)), key), trust(key.jwk));

describe('a signed lease is refused', () => {
  test.each<[object, string]>([
    [{ binding: 'tpm' }, 'binding is not one of none, device, machine'],
    [{ binding: null }, 'binding is not one of none, device, machine'],
    [{ binding: 'device' }, 'binding is device and device_thumbprint is missing'],
    [{ binding: 'machine' }, 'binding is machine and machine_hash is missing'],
    [{ product: 'two words' }, 'product is not 1 to 128 visible ASCII characters'],
    [{ machine_hash: 'short' }, 'machine_hash is not a digest of 43 base64url characters'],
  ])('with %j', (change, detail) => {
    expect(verdictOf(change)).toEqual({ ok: false, reason: 'invalid_claims', detail });
  });
});

test.each<Partial<LeaseClaims>>([
  { binding: 'none', device_thumbprint: DEVICE, machine_hash: MACHINE },
  { device_thumbprint: DEVICE, machine_hash: MACHINE },
  {},
])('a lease with %j may be used everywhere', (change) => {
  expect(checkLeaseUse(claimsOf(key, change), { product: 'trader' })).toEqual({ ok: true });
});

test('a bound lease is refused if neither device key nor machine id is given', () => {
  const device = claimsOf(key, { binding: 'device', device_thumbprint: DEVICE });
  const machine = claimsOf(key, { binding: 'machine', machine_hash: MACHINE });
  expect(checkLeaseUse(device, {})).toMatchObject({ reason: 'no_device_key' });
  expect(checkLeaseUse(machine, {})).toMatchObject({ reason: 'no_machine_id' });
});

test('the machine hash is SHA-256 of the application prefix and the id', () => {
  const id = 'b08dfa6083e7567a1921a715000001fb';
  const text = `service-local license binding v1\n${id}`;
  expect(machineHash(id)).toBe(createHash('sha256').update(text).digest('base64url'));
  expect(machineHash(` ${id.toUpperCase()}\n`)).toBe(machineHash(id));
});
