import type { ChainHead } from '../../src/base/hash-chain.ts';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ServiceError } from '../../src/base/errors.ts';
import { readAudit } from '../../src/identity/audit.ts';
import type { Identity } from '../../src/identity/context.ts';
import { checkDeviceProof, useDeviceProof } from '../../src/identity/device-proof.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import {
  type Device,
  listDevices,
  markDeviceUsed,
  purgeDevices,
  revokeDevice,
  rotateDevice,
} from '../../src/identity/devices.ts';
import { createEnrollmentCode, enrollDevice } from '../../src/identity/enrollment.ts';
import { successionBody } from '../../src/base/proof-claims.ts';
import { type SigningKey, signingKey } from '../lease/issuer.ts';
import { NOT_CANONICAL, SMALL_ORDER } from '../lease/points.ts';
import { mainlyOn } from '../storage/databases.ts';
import { claimsFor, enrolled, newVendor, ORIGIN, requestOf, seal } from './devices.ts';
import type { World } from './people.ts';

const MINUTE = 60_000;
const newKey = (): SigningKey => signingKey(randomBytes(32));
const ADMIN = 'operator';

describe.each(mainlyOn('sqlite'))('devices on %s', (kind) => {
  let world: World;
  let key: SigningKey;
  let next: SigningKey;
  let third: SigningKey;
  let start: number;
  let head: ChainHead;

  beforeAll(async () => {
    world = await newVendor(kind);
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    [key, next, third] = [newKey(), newKey(), newKey()];
    start = world.now;
    ({ head } = await readAudit(world.identity.storage.read, 0, 1));
  });

  const codeFor = async (installation: string): Promise<string> =>
    (await createEnrollmentCode(world.identity, ADMIN, installation)).code;
  const enroll = (
    code: string,
    signer = key,
    { identity = world.identity, name = 'host-1', by = signer, now = world.now } = {},
  ): Promise<Device> => {
    const request = requestOf(`{"code":"${code}"}`, '/auth/license/devices');
    const proof = seal(by, claimsFor(by, request, now));
    return enrollDevice(identity, { code, x: signer.jwk.x, name }, proof, request, [ORIGIN]);
  };
  const rotate = async (
    from = key,
    to = next,
    body = successionBody(from.jwk.kid),
  ): Promise<Device> => {
    const request = requestOf('{"jwk":{}}', '/auth/license/devices/rotate');
    const proof = seal(from, claimsFor(from, request, world.now));
    const checked = await checkDeviceProof(world.identity, proof, request, [ORIGIN]);
    const byNew = seal(to, claimsFor(to, { ...request, body }, world.now));
    const successor = { x: to.jwk.x, proof: byNew };
    return rotateDevice(world.identity, checked, successor, request, [ORIGIN]);
  };
  const use = async (signer: SigningKey): Promise<void> => {
    const request = requestOf();
    const proof = seal(signer, claimsFor(signer, request, world.now));
    const checked = await checkDeviceProof(world.identity, proof, request, [ORIGIN]);
    await world.identity.storage.write(async (tx) => {
      await markDeviceUsed(tx, world.now, await useDeviceProof(tx, world.now, checked));
    });
  };
  const deviceOf = async ({ jwk }: SigningKey): Promise<Device> =>
    world.identity.storage.read
      .selectFrom('devices')
      .selectAll()
      .where('device_id', '=', jwk.kid)
      .executeTakeFirstOrThrow();
  const audit = async (): Promise<unknown[]> => {
    const { entries } = await readAudit(world.identity.storage.read, head.seq, 1000);
    return entries.map(({ actor, action, target, details }) => ({
      actor,
      action,
      target,
      details,
    }));
  };

  describe('an enrollment code', () => {
    test('an enrollment code is returned once, in readable groups, and stored as a hash', async () => {
      const made = await createEnrollmentCode(world.identity, ADMIN, 'tokyo');
      expect(made).toEqual({
        code: expect.stringMatching(/^([0-9A-HJKMNP-TV-Z]{4}-){6}[0-9A-HJKMNP-TV-Z]{4}$/) as string,
        deployment_id: 'tokyo',
        root_fingerprint: null,
        expires_at: start + 10 * MINUTE,
      });
      const kept = JSON.stringify([
        await world.identity.storage.read.selectFrom('enrolment_codes').selectAll().execute(),
        await audit(),
      ]);
      expect(kept).toContain('tokyo');
      expect(kept).not.toContain(made.code);
      expect(kept).not.toContain(made.code.replaceAll('-', ''));
      expect(await codeFor('tokyo')).not.toBe(made.code);
      expect(await audit()).toContainEqual({
        actor: ADMIN,
        action: 'admin.identity.device.enrol_code',
        target: 'deployment:tokyo',
        details: {},
      });
    });

    test('a code for an unknown installation is refused', async () => {
      await expect(codeFor('kyoto')).rejects.toMatchObject({ code: 'not_found' });
      expect(await audit()).toEqual([]);
    });

    test('a code enrolls a key as a device', async () => {
      const device = await enroll(await codeFor('tokyo'));
      expect(device).toEqual({
        device_id: key.jwk.kid,
        deployment_id: 'tokyo',
        x: key.jwk.x,
        name: 'host-1',
        enrolled_at: start,
        replaces: null,
        first_used_at: null,
        revoked_at: null,
        revoked_by: null,
        revoked_reason: null,
        machine_hash: null,
      });
      expect(await deviceOf(key)).toEqual(device);
      expect((await audit()).at(-1)).toEqual({
        actor: `device:${key.jwk.kid}`,
        action: 'identity.device.enrol',
        target: 'deployment:tokyo',
        details: { name: 'host-1' },
      });
      await use(key);
      expect(await deviceOf(key)).toEqual({ ...device, first_used_at: start });
    });

    test('a code enrolls one key only', async () => {
      const code = await codeFor('tokyo');
      await enroll(code);
      await expect(enroll(code, next)).rejects.toMatchObject({
        code: 'not_authenticated',
        reason: 'used_code',
      });
    });

    test('a repeated enrollment of the same key returns the same device and changes nothing', async () => {
      const code = await codeFor('tokyo');
      const device = await enroll(code);
      const entries = await audit();
      world.now += 24 * 60 * MINUTE;
      await world.identity.storage.write((tx) => purgeDevices(tx, world.now));
      expect(await enroll(code, key, { name: 'another name' })).toEqual(device);
      expect(await audit()).toEqual(entries);
    });

    test('a code is valid for ten minutes', async () => {
      const [first, second, unused] = [
        await codeFor('tokyo'),
        await codeFor('tokyo'),
        await codeFor('osaka'),
      ];
      world.now += 10 * MINUTE - 1;
      await enroll(first);
      world.now += 1;
      const refused = { code: 'not_authenticated', reason: 'expired_code' };
      await expect(enroll(second, next)).rejects.toMatchObject(refused);
      await world.identity.storage.write((tx) => purgeDevices(tx, world.now));
      const forgotten = { code: 'not_authenticated', reason: 'unknown_code' };
      await expect(enroll(unused, next)).rejects.toMatchObject(forgotten);
    });

    test('a code is accepted in any case and with confusable letters', async () => {
      const code = await codeFor('tokyo');
      const typed = ` ${code.toLowerCase().replaceAll('-', ' ').replaceAll('0', 'o').replaceAll('1', 'l')}\n`;
      expect(await enroll(typed.replace('\n', ''))).toMatchObject({ deployment_id: 'tokyo' });
    });

    test('an unknown code is refused', async () => {
      for (const code of ['', 'A'.repeat(28), '\0', '\ud800', 'x'.repeat(100_000)]) {
        await expect(enroll(code), code).rejects.toMatchObject({
          code: 'not_authenticated',
          reason: 'unknown_code',
        });
      }
    });

    test('a repeated enrollment does not wait for other writes', async () => {
      const [used, over] = [await codeFor('tokyo'), await codeFor('tokyo')];
      const device = await enroll(used);
      world.now += 10 * MINUTE;
      const write = (): Promise<never> => Promise.reject(new Error('a write'));
      const identity = { ...world.identity, storage: { ...world.identity.storage, write } };
      const outcome = (code: string, signer: SigningKey): Promise<unknown> =>
        enroll(code, signer, { identity }).catch((error: ServiceError) => error.reason);
      expect(await outcome('made up', next)).toBe('unknown_code');
      expect(await outcome(used, next)).toBe('used_code');
      expect(await outcome(over, next)).toBe('expired_code');
      expect(await outcome(used, key)).toEqual(device);
    });

    test('a code that two devices use in parallel enrolls one of them', async () => {
      const code = await codeFor('tokyo');
      const identity: Identity = await world.another();
      const outcomes = await Promise.allSettled([enroll(code), enroll(code, next, { identity })]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
        reason: { code: 'not_authenticated', reason: 'used_code' },
      });
      const found = await Promise.allSettled([deviceOf(key), deviceOf(next)]);
      expect(found.map(({ status }) => status)).toEqual(outcomes.map(({ status }) => status));
    });
  });

  describe('enrollment', () => {
    test('enrollment needs a proof by the key, whatever the clock of the device', async () => {
      const code = await codeFor('tokyo');
      await expect(enroll(code, key, { by: next })).rejects.toMatchObject({
        code: 'invalid_device_proof',
        reason: 'bad_signature',
      });
      expect(await enroll(code, key, { now: 0 })).toMatchObject({ device_id: key.jwk.kid });
    });

    test('enrollment refuses weak keys', async () => {
      const code = await codeFor('tokyo');
      const points = [...SMALL_ORDER.map(([, point]) => point), NOT_CANONICAL[0]!];
      const keys = points.map((point) => Buffer.from(point).toString('base64url'));
      for (const x of [...keys, '', 'AAAA', `${key.jwk.x}=`, '\0', '\ud800']) {
        const signer = { ...key, jwk: { ...key.jwk, x } };
        await expect(enroll(code, signer), x).rejects.toMatchObject({
          code: 'invalid_request',
          reason: expect.stringMatching(/^(key_|bad_base64|invalid_keyset)/) as string,
          problems: [{ pointer: '/jwk/x' }],
        });
      }
    });

    test('enrollment refuses names of several lines', async () => {
      const code = await codeFor('tokyo');
      for (const name of ['', ' ', 'a\nb', 'a\0', '\ud800', 'x'.repeat(201)]) {
        await expect(enroll(code, key, { name }), name).rejects.toMatchObject({
          code: 'invalid_request',
          problems: [{ pointer: '/name' }],
        });
      }
    });

    test('enrolling again with another code leaves the device unchanged', async () => {
      const device = await enroll(await codeFor('tokyo'));
      const code = await codeFor('tokyo');
      expect(await enroll(code)).toEqual(device);
      await expect(enroll(code, next)).rejects.toMatchObject({ reason: 'used_code' });
    });

    test('enrollment refuses a revoked key and a key of another installation', async () => {
      const code = await codeFor('tokyo');
      await enroll(code);
      await expect(enroll(await codeFor('osaka'))).rejects.toMatchObject({
        code: 'conflict',
        reason: 'other_deployment',
      });
      await revokeDevice(world.identity, ADMIN, key.jwk.kid, 'stolen');
      const refused = { code: 'conflict', reason: 'revoked_key' };
      await expect(enroll(await codeFor('tokyo'))).rejects.toMatchObject(refused);
      await expect(enroll(code), 'by the same code').rejects.toMatchObject(refused);
    });
  });

  describe('rotation', () => {
    beforeEach(() => enrolled(world, key, 'tokyo'));
    const revokedKey = { reason: 'revoked_device' };

    test('the old key works until the first use of the new key', async () => {
      world.now += MINUTE;
      expect(await rotate()).toMatchObject({
        device_id: next.jwk.kid,
        deployment_id: 'tokyo',
        name: 'host-1',
        enrolled_at: start + MINUTE,
        replaces: key.jwk.kid,
        first_used_at: null,
      });
      await use(key);
      await use(next);
      await expect(use(key)).rejects.toMatchObject(revokedKey);
      await use(next);
      expect(await deviceOf(key)).toMatchObject({
        revoked_at: start + MINUTE,
        revoked_by: `device:${next.jwk.kid}`,
        revoked_reason: 'replaced',
      });
      expect((await audit()).slice(-2)).toEqual([
        {
          actor: `device:${key.jwk.kid}`,
          action: 'identity.device.rotate',
          target: `device:${key.jwk.kid}`,
          details: { deployment_id: 'tokyo', successor: next.jwk.kid, revoked_along: [] },
        },
        {
          actor: `device:${next.jwk.kid}`,
          action: 'identity.device.replace',
          target: `device:${key.jwk.kid}`,
          details: { deployment_id: 'tokyo' },
        },
      ]);
    });

    test('a rotation can be repeated', async () => {
      const rotated = await rotate();
      const entries = await audit();
      expect(await rotate()).toEqual(rotated);
      expect(await audit()).toEqual(entries);
    });

    test('a rotation to another key revokes the unused successor', async () => {
      await rotate();
      await rotate(key, third);
      await expect(use(next)).rejects.toMatchObject(revokedKey);
      expect((await audit()).at(-1)).toMatchObject({
        action: 'identity.device.rotate',
        details: { successor: third.jwk.kid, revoked_along: [next.jwk.kid] },
      });
      await use(third);
      await expect(use(key)).rejects.toMatchObject(revokedKey);
    });

    test('the new key can be rotated as well', async () => {
      await rotate();
      await rotate(next, third);
      await expect(use(key), 'the rotation was a use').rejects.toMatchObject(revokedKey);
      await use(third);
      await expect(use(next)).rejects.toMatchObject(revokedKey);
    });

    test('a rotation needs a proof by the new key for this device', async () => {
      await expect(rotate(key, next, successionBody(next.jwk.kid))).rejects.toMatchObject({
        reason: 'body_changed',
      });
      const thief = { ...next, sign: third.sign };
      await expect(rotate(key, thief)).rejects.toMatchObject({ reason: 'bad_signature' });
      expect(await deviceOf(key)).toMatchObject({ revoked_at: null });
    });

    test('a rotation to a registered key is refused', async () => {
      await enrolled(world, third, 'osaka');
      const refused = { code: 'conflict', reason: 'known_key' };
      await expect(rotate(key, key)).rejects.toMatchObject(refused);
      await expect(rotate(key, third)).rejects.toMatchObject(refused);
      await rotate();
      await rotate(key, newKey());
      await expect(rotate(), 'back to one that was given up').rejects.toMatchObject(refused);
    });
  });

  describe('revocation', () => {
    beforeEach(() => enrolled(world, key, 'tokyo'));

    test('a revoked device is refused, and its revocation is in the audit log', async () => {
      world.now += MINUTE;
      const revoked = await revokeDevice(world.identity, ADMIN, key.jwk.kid, 'laptop stolen');
      expect(revoked).toMatchObject({
        device_id: key.jwk.kid,
        revoked_at: start + MINUTE,
        revoked_by: ADMIN,
        revoked_reason: 'laptop stolen',
      });
      expect(await deviceOf(key)).toEqual(revoked);
      await expect(use(key)).rejects.toMatchObject({ reason: 'revoked_device' });
      const entries = await audit();
      expect(entries.at(-1)).toEqual({
        actor: ADMIN,
        action: 'admin.identity.device.revoke',
        target: `device:${key.jwk.kid}`,
        details: { deployment_id: 'tokyo', reason: 'laptop stolen', revoked_along: [] },
      });
      world.now += MINUTE;
      expect(await revokeDevice(world.identity, 'operator', key.jwk.kid, 'again')).toEqual(revoked);
      expect(await audit()).toEqual(entries);
    });

    test('revoking a device revokes its unused successor and no other key', async () => {
      await enrolled(world, third, 'tokyo');
      await rotate();
      await revokeDevice(world.identity, ADMIN, key.jwk.kid, 'stolen');
      await expect(use(next)).rejects.toMatchObject({ reason: 'revoked_device' });
      expect((await audit()).at(-1)).toMatchObject({
        action: 'admin.identity.device.revoke',
        target: `device:${key.jwk.kid}`,
        details: { revoked_along: [next.jwk.kid] },
      });
      await use(third);
    });

    test('revoking a replaced key does not affect its successor', async () => {
      await rotate();
      await use(next);
      await revokeDevice(world.identity, ADMIN, key.jwk.kid, 'old laptop');
      expect(await deviceOf(next)).toMatchObject({ revoked_at: null });
    });

    test('revoking needs a known device and a reason', async () => {
      const revoke = (id: string, reason: string): Promise<unknown> =>
        revokeDevice(world.identity, ADMIN, id, reason);
      await expect(revoke(next.jwk.kid, 'lost')).rejects.toMatchObject({ code: 'not_found' });
      await expect(revoke('\0', 'lost')).rejects.toMatchObject({ code: 'not_found' });
      await expect(revoke(key.jwk.kid, '')).rejects.toMatchObject({ code: 'invalid_request' });
      await use(key);
    });
  });

  test('devices are listed page by page, of all installations or of one', async () => {
    const keys = Array.from({ length: 5 }, newKey);
    const nagoya = { deployment_id: 'nagoya', contract_id: 'acme-pro', name: 'Nagoya' };
    await createInstallation(world.identity, ADMIN, nagoya);
    for (const [i, one] of keys.entries()) await enrolled(world, one, i < 3 ? 'nagoya' : 'tokyo');
    const list = async (installation: string | undefined): Promise<string[]> => {
      const ids: string[] = [];
      let cursor: string | null | undefined;
      while (cursor !== null) {
        const page = { limit: 2, cursor };
        const found = await listDevices(
          world.identity.storage.read,
          { deployment_id: installation },
          page,
        );
        ids.push(...found.items.map(({ device_id }) => device_id));
        cursor = found.next_cursor;
      }
      return ids;
    };
    const ids = keys.map(({ jwk }) => jwk.kid);
    const all = await list(undefined);
    expect(new Set(all).size).toBe(all.length);
    expect(all).toEqual(expect.arrayContaining(ids));
    expect((await list('nagoya')).sort()).toEqual(ids.slice(0, 3).sort());
    await expect(list('kyoto')).rejects.toMatchObject({ code: 'not_found' });
    const { storage } = world.identity;
    const { next_cursor: cursor } = await listDevices(
      storage.read,
      { deployment_id: 'nagoya' },
      { limit: 2 },
    );
    await expect(
      listDevices(storage.read, { deployment_id: 'tokyo' }, { limit: 2, cursor: cursor! }),
    ).rejects.toMatchObject({ code: 'invalid_request' });
  });
});
