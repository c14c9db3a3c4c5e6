import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newDeviceKey } from '../../src/client/device-key.ts';
import { makeOfflineRequest } from '../../src/client/device-proof.ts';
import { readAudit } from '../../src/identity/audit.ts';
import type { Identity, LeasePolicy } from '../../src/identity/context.ts';
import { issueForRequest } from '../../src/identity/issue.ts';
import { renewLease } from '../../src/identity/renew-lease.ts';
import type { Signer } from '../../src/identity/signing-key.ts';
import { formatTime } from '../../src/lease/time.ts';
import { machineHash } from '../../src/lease/use.ts';
import type { Db, DevicesTable } from '../../src/storage/tables.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newLeaseWorld, proofOf, readAnswer, renew, type LeaseWorld } from './lease-world.ts';

describe.each(mainlyOn('sqlite'))(
  'leases that are signed before their transaction on %s',
  (kind) => {
    let world: LeaseWorld;
    let device: DevicesTable;
    beforeEach(async () => {
      world = await newLeaseWorld(kind);
      device = await world.enroll('tokyo');
    });
    afterEach(() => world.close());

    let signed: number;
    beforeEach(() => {
      signed = 0;
    });

    /** The service, which commits `change` between its first signature and the transaction after it. */
    const changing = (
      change: (tx: Db) => Promise<unknown>,
      policy: Partial<LeasePolicy> = {},
    ): Identity => {
      const signer = world.identity.signer as Signer;
      const sign = (bytes: Uint8Array): Uint8Array => {
        signed += 1;
        // Enqueued before the write of the caller, so that it is committed first.
        if (signed === 1) void world.identity.storage.write(change);
        return signer.sign(bytes);
      };
      return world.with({ policy, signer: { ...signer, sign } });
    };
    const renewals = async (): Promise<number> => {
      const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
      return entries.filter(({ action }) => action === 'identity.license.renew').length;
    };

    test('no lease is signed while other writes wait', async () => {
      const { storage } = world.identity;
      let writing = 0;
      const write: typeof storage.write = (work, options) =>
        storage.write(async (tx) => {
          writing += 1;
          try {
            return await work(tx);
          } finally {
            writing -= 1;
          }
        }, options);
      const signer = world.identity.signer as Signer;
      const during: number[] = [];
      const sign = (bytes: Uint8Array): Uint8Array => {
        during.push(writing);
        return signer.sign(bytes);
      };
      const identity = {
        ...world.identity,
        storage: { ...storage, write },
        signer: { ...signer, sign },
      };
      await renew(identity, device);
      const request = { name: 'vault', renewal_id: randomUUID() };
      const offline = makeOfflineRequest(newDeviceKey(), request, world.now);
      await issueForRequest(identity, world.caller, { deployment_id: 'tokyo' }, offline);
      expect(during).toEqual([0, 0]);
    });

    test('a lease is signed once if nothing changes', async () => {
      await renew(
        changing(async () => {}),
        device,
      );
      expect(signed).toBe(1);
    });

    test('a change of the contract after the signature leads to another signature, and one renewal', async () => {
      const identity = changing((tx) =>
        tx.updateTable('contracts').set({ entitlements: '[]', ttl_seconds: 3600 }).execute(),
      );
      const { claims, renewed } = await renew(identity, device);
      expect(claims).toMatchObject({ entitlements: ['live_trading'], ttl_seconds: 3600 });
      expect(renewed).toMatchObject({ fresh: true, warnings: [] });
      expect(signed).toBe(2);
      expect(await renewals()).toBe(1);
    });

    test.each([
      [
        'the installation was revoked',
        (tx: Db, now: number) => tx.updateTable('deployments').set({ revoked_at: now }).execute(),
        { code: 'license_revoked' },
      ],
      [
        'the contract ended',
        (tx: Db, now: number) => tx.updateTable('contracts').set({ ends_at: now }).execute(),
        { code: 'contract_ended' },
      ],
      [
        'the key was retired',
        (tx: Db) => tx.updateTable('signing_keys').set({ status: 'retired' }).execute(),
        { code: 'license_lease_unavailable', reason: 'retired_key' },
      ],
      [
        'the device was revoked',
        (tx: Db, now: number) => tx.updateTable('devices').set({ revoked_at: now }).execute(),
        { code: 'invalid_device_proof', reason: 'revoked_device' },
      ],
    ] as const)('a signed lease is not issued if %s in the meantime', async (_, change, error) => {
      const identity = changing((tx) => change(tx, world.now));
      await expect(renew(identity, device)).rejects.toMatchObject(error);
      const { read } = identity.storage;
      expect(await read.selectFrom('license_leases').select('lease_id').execute()).toEqual([]);
      expect(await read.selectFrom('used_proofs').select('jti').execute()).toEqual([]);
    });

    test('a lease that ends before its transaction is signed again with its full term', async () => {
      const identity = changing(
        async () => {
          world.now += 3_600_000;
        },
        { ttl_seconds: 3600, grace_period_seconds: 0 },
      );
      await world.identity.storage.write((tx) =>
        tx.updateTable('plans').set({ ttl_seconds: 3600, grace_period_seconds: 0 }).execute(),
      );
      const { claims } = await renew(identity, device);
      expect(claims.issued_at).toBe(formatTime(world.now));
      expect(signed).toBe(2);
    });

    test('two different renewals at once are noticed as a clone, although both were signed', async () => {
      const strict = world.with({ policy: { clone_policy: 'refuse' } });
      const { answer } = await renew(strict, device);
      const outcomes = await Promise.allSettled([
        renew(strict, device, answer.lease),
        renew(strict, device, answer.lease),
      ]);
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      const refused = outcomes.find((outcome) => outcome.status === 'rejected');
      expect(refused!.reason).toMatchObject({ code: 'credential_cloned' });
      const { entries } = await readAudit(strict.storage.read, 0, 1000);
      expect(entries.at(-1)).toMatchObject({ action: 'identity.license.clone_suspected' });
    });

    test('a device whose machine was recorded after its proof was checked gets a lease', async () => {
      const machine_hash = machineHash('b08dfa6083e7567a1921a715000001fb');
      await world.identity.storage.write(async (tx) => {
        await tx.updateTable('plans').set({ binding: 'machine' }).execute();
        await tx.updateTable('devices').set({ machine_hash }).execute();
      });
      expect(device.machine_hash).toBeNull();
      const { claims } = await renew(world.identity, device);
      expect(claims).toMatchObject({ binding: 'machine', machine_hash });
    });

    test('one renewal that is sent many times at once gets the same bytes each time', async () => {
      const { identity } = world;
      const request = { renewal_id: randomUUID() };
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => renewLease(identity, proofOf(device), request)),
      );
      expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
      expect(answers.filter(({ fresh }) => fresh)).toHaveLength(1);
      await readAnswer(identity, answers[0]!.body);
    });

    test('an offline request is signed again after a change, and admits its device once', async () => {
      const identity = changing((tx) =>
        tx.updateTable('contracts').set({ entitlements: '[]' }).execute(),
      );
      const key = newDeviceKey();
      const request = { name: 'vault', renewal_id: randomUUID() };
      const offline = makeOfflineRequest(key, request, world.now);
      const { body } = await issueForRequest(
        identity,
        world.caller,
        { deployment_id: 'tokyo' },
        offline,
      );
      const { claims } = await readAnswer(identity, body);
      expect(claims).toMatchObject({
        entitlements: ['live_trading'],
        device_thumbprint: key.device_id,
      });
      expect(signed).toBe(2);
      const { entries } = await readAudit(identity.storage.read, 0, 1000);
      const admitted = entries.filter(({ action }) => action === 'admin.identity.device.admit');
      expect(admitted).toHaveLength(1);
    });
  },
);
