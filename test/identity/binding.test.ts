import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { makeOfflineRequest } from '../../src/client/device-proof.ts';
import { readAudit } from '../../src/identity/audit.ts';
import { findDevice } from '../../src/identity/device-proof.ts';
import { rotateDevice, type Device } from '../../src/identity/devices.ts';
import { createEnrollmentCode, enrollDevice } from '../../src/identity/enrollment.ts';
import { issueForRequest, issueLease, previewLease } from '../../src/identity/issue.ts';
import { updatePlan, type PlanChanges } from '../../src/identity/plans.ts';
import { dryRunRenewal, renewLease } from '../../src/identity/renew-lease.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { machineHash } from '../../src/lease/use.ts';
import type { SigningKey } from '../lease/issuer.ts';
import { successionBody } from '../../src/base/proof-claims.ts';
import { mainlyOn } from '../storage/databases.ts';
import { claimsFor, ORIGIN, requestOf, seal, signerOf } from './devices.ts';
import { newLeaseWorld, proofOf, readAnswer, renew, type LeaseWorld } from './lease-world.ts';

const MACHINE = machineHash('b08dfa6083e7567a1921a715000001fb');
const OTHER_MACHINE = machineHash('00000000000000000000000000000001');

describe.each(mainlyOn('sqlite'))('leases, on %s', (kind) => {
  let world: LeaseWorld;
  beforeEach(async () => {
    world = await newLeaseWorld(kind);
  });
  afterEach(() => world.close());

  const change = (changes: PlanChanges) => updatePlan(world.identity, 'operator', 'pro', changes);
  const renewed = async (device: Device, machine_hash?: string): Promise<LeaseClaims> => {
    const request = { renewal_id: randomUUID(), machine_hash };
    const { body } = await renewLease(world.identity, proofOf(device), request);
    return (await readAnswer(world.identity, body)).claims;
  };
  const known = async ({ device_id }: Pick<Device, 'device_id'>): Promise<Device> =>
    (await findDevice(world.identity.storage.read, device_id))!;
  const codeFor = async (): Promise<string> =>
    (await createEnrollmentCode(world.identity, 'operator', 'tokyo')).code;
  const enroll = async (code: string, key: SigningKey, machine_hash?: string): Promise<Device> => {
    const request = requestOf(`{"code":"${code}"}`, '/auth/license/devices');
    const proof = seal(key, claimsFor(key, request, world.now));
    const wanted = { code, x: key.jwk.x, name: 'host-1', machine_hash };
    return enrollDevice(world.identity, wanted, proof, request, [ORIGIN]);
  };

  test('leases name the product of the settings or of the plan', async () => {
    const device = await world.enroll('tokyo');
    const first = await renewed(device);
    expect(first).toMatchObject({ product: 'service-local', device_thumbprint: device.device_id });
    expect(first).not.toHaveProperty('binding');
    await change({ product: 'trader' });
    expect(await renewed(device)).toMatchObject({ product: 'trader' });
    await change({ product: null });
    const other = world.with({ policy: { product: 'viewer' } });
    expect((await renew(other, device)).claims).toMatchObject({ product: 'viewer' });
    await expect(change({ product: 'two words' })).rejects.toMatchObject({
      code: 'invalid_request',
      problems: [{ pointer: '/product' }],
    });
  });

  test('a lease is bound to the key of its device, also after a rotation', async () => {
    await change({ binding: 'device' });
    const device = await world.enroll('tokyo');
    const bound = { binding: 'device', device_thumbprint: device.device_id };
    const first = await renew(world.identity, device);
    expect(first.claims).toMatchObject(bound);
    expect(first.claims).not.toHaveProperty('machine_hash');
    const next = await world.succeed(device);
    const second = await renew(world.identity, next, first.answer.lease);
    expect(second.claims).toMatchObject({ ...bound, device_thumbprint: next.device_id });
  });

  test('a lease that is bound to a device is not issued without a device', async () => {
    for (const binding of ['device', 'machine'] as const) {
      await change({ binding });
      const asked = { deployment_id: 'tokyo' };
      const refused = {
        code: 'not_allowed',
        reason: 'device_required',
        message: `the plan pro binds leases to a ${binding}, and this request names no device`,
      };
      await expect(issueLease(world.identity, world.caller, asked)).rejects.toMatchObject(refused);
      await expect(previewLease(world.identity, world.caller, asked)).rejects.toMatchObject(
        refused,
      );
    }
    await change({ binding: 'none' });
    await issueLease(world.identity, world.caller, { deployment_id: 'tokyo' });
  });

  test('a lease is bound to the machine that the device first states', async () => {
    const device = await world.enroll('tokyo');
    await change({ binding: 'machine' });
    const refused = { code: 'not_allowed', reason: 'machine_id_required' };
    await expect(renewed(device)).rejects.toMatchObject(refused);
    const dryRun = { renewal_id: randomUUID() };
    await expect(dryRunRenewal(world.identity, proofOf(device), dryRun)).rejects.toMatchObject(
      refused,
    );
    await dryRunRenewal(world.identity, proofOf(device), { ...dryRun, machine_hash: MACHINE });
    expect(await known(device)).toMatchObject({ machine_hash: null });

    const bound = { binding: 'machine', machine_hash: MACHINE };
    expect(await renewed(device, MACHINE)).toMatchObject(bound);
    expect(await known(device)).toMatchObject({ machine_hash: MACHINE });
    expect(await renewed(await known(device))).toMatchObject(bound);
    await expect(renewed(await known(device), OTHER_MACHINE)).rejects.toMatchObject({
      code: 'not_allowed',
      reason: 'other_machine',
    });
    const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
    expect(entries.filter(({ action }) => action === 'identity.device.bind_machine')).toMatchObject(
      [
        {
          actor: `device:${device.device_id}`,
          target: `device:${device.device_id}`,
          details: { deployment_id: 'tokyo', machine_hash: MACHINE },
        },
      ],
    );
  });

  test('a lease is bound to the machine of the latest enrollment, also for the next key of the device', async () => {
    await change({ binding: 'machine' });
    const key = signerOf(newDeviceKey());
    const code = await codeFor();
    await expect(enroll(code, key)).rejects.toMatchObject({
      code: 'not_allowed',
      reason: 'machine_id_required',
    });
    const device = await enroll(code, key, MACHINE);
    expect(device).toMatchObject({ machine_hash: MACHINE });
    expect(await enroll(code, key, OTHER_MACHINE)).toEqual(device);
    expect(await renewed(device)).toMatchObject({ machine_hash: MACHINE });
    await enroll(await codeFor(), key, OTHER_MACHINE);
    expect(await renewed(await known(device))).toMatchObject({ machine_hash: OTHER_MACHINE });

    const next = signerOf(newDeviceKey());
    const request = requestOf('{"jwk":{}}', '/auth/license/devices/rotate');
    const body = successionBody(device.device_id);
    const proof = seal(next, claimsFor(next, { ...request, body }, world.now));
    const successor = { x: next.jwk.x, proof };
    const old = proofOf(await known(device));
    const rotated = await rotateDevice(world.identity, old, successor, request, [ORIGIN]);
    expect(await renewed(rotated)).toMatchObject({
      device_thumbprint: next.jwk.kid,
      machine_hash: OTHER_MACHINE,
    });
  });

  describe('for a machine without a network', () => {
    const issue = async (key: DeviceKey, machine_hash?: string): Promise<LeaseClaims> => {
      const asked = { name: 'vault', renewal_id: randomUUID(), machine_hash };
      const jwt = makeOfflineRequest(key, asked, world.now);
      const wanted = { deployment_id: 'tokyo' };
      const { body } = await issueForRequest(world.identity, world.caller, wanted, jwt);
      return (await readAnswer(world.identity, body)).claims;
    };

    test('a lease for an offline request is bound to its device and machine', async () => {
      const key = newDeviceKey();
      await change({ binding: 'device' });
      expect(await issue(key)).toMatchObject({ device_thumbprint: key.device_id });
      await change({ binding: 'machine' });
      await expect(issue(key)).rejects.toMatchObject({ reason: 'machine_id_required' });
      expect(await issue(key, MACHINE)).toMatchObject({ machine_hash: MACHINE });
      await expect(issue(key, OTHER_MACHINE)).rejects.toMatchObject({ reason: 'other_machine' });
      await expect(issue(newDeviceKey(), 'short')).rejects.toMatchObject({
        code: 'invalid_request',
      });
      const moved = newDeviceKey();
      expect(await issue(moved, OTHER_MACHINE)).toMatchObject({ machine_hash: OTHER_MACHINE });
      expect(await known(moved)).toMatchObject({ machine_hash: OTHER_MACHINE });
    });
  });
});
