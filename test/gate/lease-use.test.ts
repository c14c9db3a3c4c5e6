import { chmodSync, rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { openLicenseGate } from '../../src/gate/gate.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { machineHash } from '../../src/lease/use.ts';
import { KEY, keysetOf, leaseOf, newLicensePlace, type LicensePlace } from './license-place.ts';

const MACHINE = machineHash('b08dfa6083e7567a1921a715000001fb');
const OTHER_MACHINE = machineHash('00000000000000000000000000000001');

let place: LicensePlace;
let device: DeviceKey;
beforeEach(() => {
  place = newLicensePlace();
  place.put(place.files.keyset, keysetOf(KEY));
  device = newDeviceKey();
});
afterEach(() => place.remove());

const putLease = (change: Partial<LeaseClaims>, days = 0): void =>
  place.put(place.files.lease, leaseOf(`lease-${days}`, days, change));
const putKey = (path: string, { privateKey }: DeviceKey): void => {
  place.put(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  chmodSync(path, 0o600);
};
const VALID = { allowed: true, status: 'valid' };
const refused = (reason: string) => expect.objectContaining({ allowed: false, reason }) as unknown;

describe('a gate of a product', () => {
  test('a gate with a product accepts leases for it and leases without a product', async () => {
    putLease({ product: 'trader' });
    const gate = await place.open({ product: 'trader' });
    expect(gate.check('live_trading')).toEqual(VALID);
    putLease({});
    const later = await place.open({ product: 'trader' });
    expect(later.check('live_trading')).toEqual(VALID);
  });

  test('a gate with a product refuses leases for others, which a gate without one accepts', async () => {
    putLease({ product: 'viewer' });
    const gate = await place.open({ product: 'trader' });
    expect(gate.check('live_trading')).toEqual(refused('other_product'));
    expect(gate.status()).toMatchObject({
      state: 'none',
      refused: [{ path: place.files.lease, reason: 'other_product' }],
    });
    const any = await place.open();
    expect(any.check('live_trading')).toEqual(VALID);
  });

  test('the product of a gate must be a valid name', async () => {
    const opened = openLicenseGate({ files: place.files, enforced: true, product: 'two words' });
    await expect(opened).rejects.toMatchObject({ code: 'invalid_setting' });
  });
});

describe('a lease that is bound to a device', () => {
  beforeEach(() => putLease({ binding: 'device', device_thumbprint: device.device_id }));

  test('a device-bound lease works with the private key of its device', async () => {
    putKey(place.files.key, device);
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  test('a device-bound lease is refused while the key file is missing, and the refusal names the file', async () => {
    const gate = await place.open({ pollMs: 5 });
    expect(gate.check('live_trading')).toEqual(refused('no_device_key'));
    expect(gate.status().refused).toMatchObject([
      { path: place.files.lease, detail: expect.stringContaining(place.files.key) as string },
    ]);
    putKey(place.files.key, device);
    await gate.until(({ state }) => state === 'valid');
  });

  test('a device-bound lease is refused with another key and with an invalid key file', async () => {
    putKey(place.files.key, newDeviceKey());
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(refused('other_device'));
    place.put(place.files.key, device.device_id);
    const later = await place.open();
    expect(later.check('live_trading')).toEqual(refused('no_device_key'));
  });

  test('a device-bound lease works after a rotation while the former key is kept', async () => {
    putKey(place.files.key, newDeviceKey());
    putKey(place.files.formerKey, device);
    const gate = await place.open();
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  test('a device-bound lease stays in force in a gate that has accepted it', async () => {
    putKey(place.files.key, device);
    const gate = await place.open({ pollMs: 5 });
    rmSync(place.files.key);
    putLease({ binding: 'device', device_thumbprint: newDeviceKey().device_id }, 1);
    await gate.until(({ refused: files }) => files[0]?.reason === 'no_device_key');
    expect(gate.check('live_trading')).toEqual(VALID);
  });

  test('a lease for another device gives way to a usable backup', async () => {
    place.put(`${place.files.lease}.bak`, leaseOf('copy', -1));
    const gate = await place.open();
    expect(gate.status()).toMatchObject({ state: 'valid', lease: { lease_id: 'copy' } });
  });
});

describe('a lease that is bound to a machine', () => {
  beforeEach(() => putLease({ binding: 'machine', machine_hash: MACHINE }));

  test.each([
    [MACHINE, VALID],
    [OTHER_MACHINE, refused('other_machine')],
    [undefined, refused('no_machine_id')],
  ])('on the machine %s', async (hash, decision) => {
    const gate = await place.open({ machineHash: async () => hash });
    expect(gate.check('live_trading')).toEqual(decision);
  });
});
