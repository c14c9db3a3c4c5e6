import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { makeDeviceProof, makeOfflineRequest } from '../../src/client/device-proof.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { readAudit } from '../../src/identity/audit.ts';
import { reinstateInstallation } from '../../src/identity/installations.ts';
import type { Identity } from '../../src/identity/context.ts';
import { findDevice } from '../../src/identity/device-proof.ts';
import { issueForRequest, issueLease, type IssueRequest } from '../../src/identity/issue.ts';
import type { LeaseAnswer } from '../../src/identity/lease-record.ts';
import { getLease, listLeases } from '../../src/identity/leases.ts';
import {
  dryRunRenewal,
  eraseAnswers,
  renewLease,
  type DryRun,
  type Renewed,
} from '../../src/identity/renew-lease.ts';
import { revoke } from '../../src/identity/revoke.ts';
import { publicKeyId } from '../../src/lease/keys.ts';
import { formatTime } from '../../src/lease/time.ts';
import { OFFLINE_REQUEST_TYPE } from '../../src/base/proof-claims.ts';
import type { DevicesTable } from '../../src/storage/tables.ts';
import { mainlyOn } from '../storage/databases.ts';
import {
  DAY,
  HOUR,
  newLeaseWorld,
  newSigner,
  proofOf,
  readAnswer,
  renew,
  revokeAs,
  stepUp,
  type LeaseWorld,
} from './lease-world.ts';

describe.each(mainlyOn('sqlite'))('leases on %s', (kind) => {
  let world: LeaseWorld;
  beforeEach(async () => {
    world = await newLeaseWorld(kind);
  });
  afterEach(() => world.close());

  const actions = async (): Promise<string[]> => {
    const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
    return entries.map(({ action }) => action);
  };
  const stored = async (): Promise<string> => {
    const tables = ['license_leases', 'renewals', 'audit_entries'] as const;
    const rows = await Promise.all(
      tables.map((table) => world.identity.storage.read.selectFrom(table).selectAll().execute()),
    );
    return JSON.stringify(rows);
  };

  describe('issued to an administrator', () => {
    test('an issued lease has the requested terms and is recorded without its signature', async () => {
      const { identity, caller, now } = world;
      const body = await issueLease(identity, caller, {
        deployment_id: 'tokyo',
        customer_id: 'acme',
        entitlements: ['live_trading'],
        ttl_seconds: 3600,
        grace_period_seconds: 60,
      });
      const { answer, claims } = await readAnswer(identity, body);
      expect(claims).toMatchObject({
        deployment_id: 'tokyo',
        customer_id: 'acme',
        entitlements: ['live_trading'],
        issued_at: formatTime(now),
        ttl_seconds: 3600,
        grace_period_seconds: 60,
        issuer: 'service-local',
      });
      expect(answer).toMatchObject({ lease_id: claims.lease_id, limits: [], warnings: [] });
      expect(await getLease(identity.storage.read, now, claims.lease_id)).toMatchObject({
        state: 'valid',
        entitlements: ['live_trading'],
        issued_by: 'administrator:root',
        device_id: null,
      });
      const { signatures } = answer.lease as { signatures: { sig: string }[] };
      expect(await stored()).not.toContain(signatures[0]!.sig);
      expect((await actions()).at(-1)).toBe('admin.identity.license.issue');
    });

    test('a lease names each entitlement once', async () => {
      const { identity, caller } = world;
      const entitlements = ['live_trading', 'kb_federation', 'live_trading'];
      const body = await issueLease(identity, caller, { deployment_id: 'tokyo', entitlements });
      const { claims } = await readAnswer(identity, body);
      expect(claims.entitlements).toEqual(['kb_federation', 'live_trading']);
    });

    test('a lease for the customer of another installation or with invalid periods is refused', async () => {
      const { identity, caller } = world;
      const issue = (request: object): Promise<string> =>
        issueLease(identity, caller, { deployment_id: 'tokyo', ...request });
      await expect(issue({ customer_id: 'globex' })).rejects.toMatchObject({
        code: 'invalid_request',
        problems: [{ pointer: '/customer_id' }],
      });
      await expect(
        issue({ ttl_seconds: 299, grace_period_seconds: 31 * 86_400 }),
      ).rejects.toMatchObject({
        code: 'invalid_request',
        problems: [{ pointer: '/ttl_seconds' }, { pointer: '/grace_period_seconds' }],
      });
      await expect(issue({ deployment_id: 'paris' })).rejects.toMatchObject({ code: 'not_found' });
      await expect(issue({ entitlements: ['byoc_deployments'] })).rejects.toMatchObject({
        code: 'not_allowed',
        reason: 'entitlement_not_in_contract',
      });
      expect(await actions()).not.toContain('admin.identity.license.issue');
    });
  });

  describe('renewed by a device', () => {
    test('a renewal uses the current terms of the registry', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const first = await renew(identity, device);
      expect(first.claims).toMatchObject({
        entitlements: ['kb_federation', 'live_trading'],
        ttl_seconds: 7 * 86_400,
        device_thumbprint: device.device_id,
      });
      await identity.storage.write((tx) =>
        tx.updateTable('contracts').set({ entitlements: '[]', ttl_seconds: 3600 }).execute(),
      );
      world.now += DAY;
      const second = await renew(identity, device, first.answer.lease);
      expect(second.claims).toMatchObject({
        entitlements: ['live_trading'],
        ttl_seconds: 3600,
        previous_lease_id: first.claims.lease_id,
      });
      expect(second.answer.warnings).toEqual([]);
      const before = await getLease(identity.storage.read, world.now, first.claims.lease_id);
      expect(before).toMatchObject({
        state: 'valid',
        entitlements: ['kb_federation', 'live_trading'],
      });
    });

    test('a renewal repeated within a day returns the same bytes, and later no copy is left', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const id = randomUUID();
      const first = await renew(identity, device, undefined, id);
      world.now += DAY - 1;
      await identity.storage.write((tx) => eraseAnswers(tx, world.now));
      const again = await renew(identity, device, undefined, id);
      expect(again.renewed).toEqual({ body: first.renewed.body, fresh: false, warnings: [] });

      world.now += 1;
      await identity.storage.write((tx) => eraseAnswers(tx, world.now));
      const { signatures } = first.answer.lease as { signatures: { sig: string }[] };
      expect(await stored()).not.toContain(signatures[0]!.sig);
      const later = await renew(identity, device, undefined, id);
      expect(later.claims.lease_id).not.toBe(first.claims.lease_id);
      expect(later.answer.warnings).toEqual([]);
    });

    test('a renewal can be repeated with the next key of the device', async () => {
      const strict = world.with({ policy: { clone_policy: 'refuse' } });
      const device = await world.enroll('tokyo');
      const first = await renew(strict, device);
      const id = randomUUID();
      await renew(strict, device, first.answer.lease, id);
      const successor = await world.succeed(device);
      const { answer, claims } = await renew(strict, successor, first.answer.lease, id);
      expect(answer.warnings).toEqual([]);
      expect(claims).toMatchObject({ renewal_id: id, device_thumbprint: successor.device_id });
    });

    test('a renewal_id of another request is refused', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const id = randomUUID();
      const first = await renew(identity, device, undefined, id);
      await expect(renew(identity, device, first.answer.lease, id)).rejects.toMatchObject({
        code: 'idempotency_mismatch',
        message: `the renewal ${id} was requested by another device or with another lease`,
      });
      const other = await world.enroll('tokyo');
      await expect(renew(identity, other, undefined, id)).rejects.toMatchObject({
        code: 'idempotency_mismatch',
      });
    });

    test('a device can renew long after its lease ended', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const first = await renew(identity, device);
      world.now += 60 * DAY;
      const { claims } = await renew(identity, device, first.answer.lease);
      expect(claims.previous_lease_id).toBe(first.claims.lease_id);
    });

    test('one proof renews one lease', async () => {
      const { identity } = world;
      const proof = proofOf(await world.enroll('tokyo'));
      const ask = (): Promise<unknown> => renewLease(identity, proof, { renewal_id: randomUUID() });
      const results = await Promise.allSettled([ask(), ask(), ask()]);
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      await expect(ask()).rejects.toMatchObject({ reason: 'replayed' });
    });

    test('a lease of another installation or issuer is refused', async () => {
      const { identity } = world;
      const tokyo = await world.enroll('tokyo');
      const osaka = await world.enroll('osaka');
      const { answer } = await renew(identity, tokyo);
      await expect(renew(identity, osaka, answer.lease)).rejects.toMatchObject({
        code: 'not_allowed',
        reason: 'other_deployment',
      });
      const neighbour = await world.enroll('tokyo');
      await expect(renew(identity, neighbour, answer.lease)).rejects.toMatchObject({
        code: 'not_allowed',
        reason: 'other_device',
      });
      await expect(renew(identity, tokyo, { payload: 'x' })).rejects.toMatchObject({
        code: 'invalid_request',
        reason: 'not_an_envelope',
      });
    });

    test('a validly signed lease that a restored database lacks is renewed, and a forged one is refused', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const { answer, claims } = await renew(identity, device);
      await identity.storage.write(async (tx) => {
        await tx.deleteFrom('renewals').execute();
        await tx.deleteFrom('license_leases').execute();
      });
      const envelope = answer.lease as { signatures: { sig: string }[] };
      const sig = Buffer.alloc(64, 1).toString('base64');
      for (const signature of [
        { ...envelope.signatures[0], sig },
        { keyid: '\0', sig },
      ]) {
        const forged = { ...envelope, signatures: [signature] };
        await expect(renew(identity, device, forged)).rejects.toMatchObject({
          code: 'invalid_request',
          reason: 'unknown_lease',
        });
      }
      const next = await renew(identity, device, envelope);
      expect(next.answer.warnings).toMatchObject([{ code: 'unknown_lease' }]);
      expect(next.claims.previous_lease_id).toBe(claims.lease_id);
    });
  });

  describe('issued for the request of a device without a network', () => {
    const INSTALLATION = { deployment_id: 'tokyo' };
    const issue = (
      asked: string,
      wishes: Partial<IssueRequest> = {},
      identity = world.identity,
    ): Promise<Renewed> =>
      issueForRequest(identity, world.caller, { ...INSTALLATION, ...wishes }, asked);
    const requestOf = (key: DeviceKey, lease?: unknown): string =>
      makeOfflineRequest(
        key,
        { name: 'vault', renewal_id: randomUUID(), ...(lease !== undefined && { lease }) },
        world.now,
      );

    test('an offline request admits its device to the installation', async () => {
      const { identity } = world;
      const key = newDeviceKey();
      const first = await readAnswer(identity, (await issue(requestOf(key))).body);
      expect(first.claims).toMatchObject({ ...INSTALLATION, device_thumbprint: key.device_id });
      world.now += DAY;
      const wishes = { ttl_seconds: 3600, entitlements: ['live_trading'] };
      const asked = requestOf(key, first.answer.lease);
      const { claims, answer } = await readAnswer(identity, (await issue(asked, wishes)).body);
      expect(claims).toMatchObject({
        ...wishes,
        previous_lease_id: first.claims.lease_id,
        device_thumbprint: key.device_id,
      });
      const { entries } = await readAudit(identity.storage.read, 0, 1000);
      const by = { actor: 'administrator:root' };
      const details = { device_id: key.device_id };
      expect(entries.slice(-3)).toMatchObject([
        { ...by, action: 'admin.identity.device.admit', target: 'deployment:tokyo', details },
        { ...by, action: 'admin.identity.license.issue', details },
        {
          ...by,
          action: 'admin.identity.license.issue',
          target: `lease:${claims.lease_id}`,
          details: { ...details, requested_at: formatTime(world.now) },
        },
      ]);
      const device = (await findDevice(identity.storage.read, key.device_id))!;
      expect(device).toMatchObject({ name: 'vault', first_used_at: world.now - DAY });
      const online = await renew(identity, device, answer.lease);
      expect(online.answer.warnings).toEqual([]);
    });

    test('a repeated offline request returns the same bytes for a day, also to the device itself', async () => {
      const { identity } = world;
      const key = newDeviceKey();
      const renewal_id = randomUUID();
      const asked = makeOfflineRequest(key, { name: 'vault', renewal_id }, world.now);
      const { body } = await issue(asked);
      expect(await issue(asked)).toMatchObject({ body, fresh: false });
      const device = (await findDevice(identity.storage.read, key.device_id))!;
      expect((await renew(identity, device, undefined, renewal_id)).renewed.body).toBe(body);
      world.now += DAY;
      const later = await readAnswer(identity, (await issue(asked)).body);
      expect(later.claims).toMatchObject({ renewal_id, issued_at: formatTime(world.now) });
      expect(later.answer.warnings).toEqual([]);
    });

    test('an offline request with other terms gets another lease without an alert', async () => {
      const { identity } = world;
      const key = newDeviceKey();
      const asked = requestOf(key);
      const both = ['live_trading', 'kb_federation'];
      const { body } = await issue(asked, { entitlements: both });
      const again = await issue(asked, { entitlements: both.toReversed() });
      expect(again).toMatchObject({ body, fresh: false });
      const first = await readAnswer(identity, body);
      const short = await issue(asked, { ttl_seconds: 3600, grace_period_seconds: 0 });
      const { claims } = await readAnswer(identity, short.body);
      expect(claims).toMatchObject({
        ttl_seconds: 3600,
        renewal_id: first.claims.renewal_id,
      });
      expect(short).toMatchObject({ fresh: true, warnings: [] });
    });

    test('an offline request gets another lease without an alert if the first has ended', async () => {
      const strict = world.with({ policy: { clone_policy: 'refuse' } });
      const asked = requestOf(newDeviceKey());
      const wishes = { ttl_seconds: 600, grace_period_seconds: 0 };
      const { body } = await issue(asked, wishes, strict);
      world.now += 599_000;
      expect(await issue(asked, wishes, strict)).toMatchObject({ body });
      world.now += 1000;
      const { claims } = await readAnswer(strict, (await issue(asked, wishes, strict)).body);
      expect(claims.issued_at).toBe(formatTime(world.now));
    });

    test('a refused clone is not admitted as a device', async () => {
      const strict = world.with({ policy: { clone_policy: 'refuse' } });
      const { lease } = JSON.parse(
        await issueLease(strict, world.caller, INSTALLATION),
      ) as LeaseAnswer;
      await issue(requestOf(newDeviceKey(), lease), {}, strict);
      const key = newDeviceKey();
      await expect(issue(requestOf(key, lease), {}, strict)).rejects.toMatchObject({
        code: 'credential_cloned',
      });
      expect(await findDevice(strict.storage.read, key.device_id)).toBeUndefined();
      expect((await actions()).at(-1)).toBe('identity.license.clone_suspected');
    });

    test.each(['AAAA', '', '!!', 'A'.repeat(43)])('the invalid key %j is refused', async (x) => {
      const iss = publicKeyId(x);
      const part = (value: object): string =>
        Buffer.from(JSON.stringify(value)).toString('base64url');
      const header = part({ typ: OFFLINE_REQUEST_TYPE, alg: 'EdDSA', kid: iss });
      const jwk = { kty: 'OKP', crv: 'Ed25519', x };
      const claims = { iss, sub: iss, iat: 1, jwk, name: 'vault', renewal_id: 'a' };
      await expect(issue(`${header}.${part(claims)}.AAAA`)).rejects.toMatchObject({
        code: 'invalid_request',
        problems: [{ pointer: '/offline_request' }],
      });
    });

    test('an offline request is refused if a renewal would be or if its signature is invalid', async () => {
      const key = newDeviceKey();
      const asked = requestOf(key);
      const other = requestOf(newDeviceKey());
      for (const [text, reason] of [
        ['', 'malformed'],
        [
          makeDeviceProof(key, { method: 'POST', url: 'https://a.example/', body: Buffer.of() }, 0),
          'malformed',
        ],
        [
          asked.slice(0, asked.lastIndexOf('.')) + other.slice(other.lastIndexOf('.')),
          'bad_signature',
        ],
        [requestOf({ ...key, x: newDeviceKey().x }), 'bad_signature'],
        [requestOf(key, { payload: 'x' }), 'not_an_envelope'],
      ] as const) {
        await expect(issue(text)).rejects.toMatchObject({ code: 'invalid_request', reason });
      }
      expect(await findDevice(world.identity.storage.read, key.device_id)).toBeUndefined();
      await issue(asked);
      await expect(issue(asked, { customer_id: 'nobody' })).rejects.toMatchObject({
        code: 'invalid_request',
      });
      await expect(issue(requestOf(key), { deployment_id: 'osaka' })).rejects.toMatchObject({
        code: 'conflict',
        reason: 'other_deployment',
      });
      const strict = world.with({ policy: { clone_policy: 'refuse' } });
      await expect(issue(requestOf(key), {}, strict)).rejects.toMatchObject({
        code: 'credential_cloned',
      });
      await revokeAs(world, strict, INSTALLATION, 'tokyo');
      await expect(issue(requestOf(key))).rejects.toMatchObject({
        code: 'license_revoked',
        remedy: expect.stringContaining('reinstate') as string,
      });
    });
  });

  describe('said beforehand, by a dry run', () => {
    const dryRun = (
      identity: Identity,
      device: DevicesTable,
      lease?: unknown,
      renewal_id: string = randomUUID(),
    ): Promise<DryRun> =>
      dryRunRenewal(identity, proofOf(device), {
        renewal_id,
        ...(lease !== undefined && { lease }),
      });

    test('a dry run returns what a renewal then issues, and records nothing', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const first = await renew(identity, device);
      const before = await stored();
      for (const held of [undefined, first.answer.lease]) await dryRun(identity, device, held);
      expect(await stored()).toBe(before);
      const said = await dryRun(identity, device, first.answer.lease);
      const id = randomUUID();
      const { answer } = await renew(identity, device, first.answer.lease, id);
      const { lease: _lease, lease_id: _id, ...given } = answer;
      expect(said).toEqual(given);
      world.now += HOUR;
      expect(await dryRun(identity, device, first.answer.lease, id)).toEqual(given);
    });

    test('a dry run is refused like a renewal, and uses up the proof', async () => {
      const strict = world.with({ policy: { clone_policy: 'refuse' } });
      const device = await world.enroll('tokyo');
      const { answer } = await renew(strict, device);
      const proof = proofOf(device);
      const request = { renewal_id: randomUUID(), lease: answer.lease };
      await dryRunRenewal(strict, proof, request);
      await expect(dryRunRenewal(strict, proof, request)).rejects.toMatchObject({
        reason: 'replayed',
      });
      await expect(dryRun(strict, await world.enroll('osaka'), answer.lease)).rejects.toMatchObject(
        {
          reason: 'other_deployment',
        },
      );
      const warned = await dryRun(world.identity, device);
      expect(warned.warnings).toMatchObject([{ code: 'credential_cloned' }]);
      const used = proofOf(device);
      const clone = { renewal_id: randomUUID() };
      await expect(dryRunRenewal(strict, used, clone)).rejects.toMatchObject({
        code: 'credential_cloned',
      });
      await expect(dryRunRenewal(strict, used, clone)).rejects.toMatchObject({
        reason: 'replayed',
      });
      expect(await actions()).not.toContain('identity.license.clone_suspected');
      const keyless = world.with({
        signer: new ServiceError('license_lease_unavailable', 'there is no key'),
      });
      await expect(dryRun(keyless, device, answer.lease)).rejects.toMatchObject({
        code: 'license_lease_unavailable',
      });
      await revokeAs(world, strict, { deployment_id: 'tokyo' }, 'tokyo');
      await expect(dryRun(strict, device, answer.lease)).rejects.toMatchObject({
        code: 'license_revoked',
        message: expect.stringContaining(answer.grace_ends_at) as string,
      });
    });
  });

  describe('renewed a second time, as by a clone or a restored backup', () => {
    test('a suspected clone gets a lease with a warning, and the alert is recorded', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const first = await renew(identity, device);
      const honest = await renew(identity, device, first.answer.lease);
      const clone = await renew(identity, device, first.answer.lease);
      expect(honest.answer.warnings).toEqual([]);
      expect(clone.answer.warnings).toMatchObject([{ code: 'credential_cloned' }]);
      expect(await actions()).toContain('identity.license.clone_suspected');
      const without = await renew(identity, device);
      expect(without.answer.warnings).toMatchObject([{ code: 'credential_cloned' }]);
      await renew(identity, device, honest.answer.lease);
    });

    test('a clone is detected if it presents another lease or none, or has rotated its key', async () => {
      const { identity, caller } = world;
      const device = await world.enroll('tokyo');
      const honest = await renew(identity, device);
      const nobodys = JSON.parse(
        await issueLease(identity, caller, { deployment_id: 'tokyo' }),
      ) as { lease: unknown };
      const warned = [{ code: 'credential_cloned' }];
      expect((await renew(identity, device, nobodys.lease)).answer.warnings).toMatchObject(warned);
      expect((await renew(identity, device)).answer.warnings).toMatchObject(warned);
      const successor = await world.succeed(device);
      expect((await renew(identity, successor)).answer.warnings).toMatchObject(warned);
      const next = await renew(identity, successor, honest.answer.lease);
      expect(next.answer.warnings).toEqual([]);
    });

    test('with clone_policy refuse, a clone is refused and recorded, and the original device renews', async () => {
      const strict = world.with({ policy: { clone_policy: 'refuse' } });
      const device = await world.enroll('tokyo');
      const first = await renew(strict, device);
      const honest = await renew(strict, device, first.answer.lease);
      await expect(renew(strict, device, first.answer.lease)).rejects.toMatchObject({
        code: 'credential_cloned',
      });
      expect(await actions()).toContain('identity.license.clone_suspected');
      const next = await renew(strict, device, honest.answer.lease);
      expect(next.answer.warnings).toEqual([]);
    });
  });

  describe('revoked', () => {
    test('a revoked lease, its renewals and requests that omit it are not renewed', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const first = await renew(identity, device);
      const second = await renew(identity, device, first.answer.lease);
      const target = { lease_id: first.claims.lease_id };
      const answer = await revokeAs(world, identity, target, 'tokyo');
      expect(answer).toEqual({
        deployment_id: 'tokyo',
        revoked_leases: 2,
        revoked_at: world.now,
        effective_at: Date.parse(second.claims.grace_ends_at),
        registry_enforced: true,
      });
      for (const lease of [first.answer.lease, second.answer.lease, undefined]) {
        await expect(renew(identity, device, lease)).rejects.toMatchObject({
          code: 'license_revoked',
          message: expect.stringContaining(second.claims.grace_ends_at) as string,
        });
      }
      expect(
        await getLease(identity.storage.read, world.now, second.claims.lease_id),
      ).toMatchObject({
        state: 'revoked',
        revoked_by: 'administrator:root',
        revoked_reason: 'unpaid',
      });
      const neighbour = await world.enroll('tokyo');
      await renew(identity, neighbour);
    });

    test('revoking a lease revokes all leases of its machine, until the end of the last', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const first = await renew(identity, device);
      world.now += DAY;
      const clone = await renew(identity, device);
      const neighbour = await renew(identity, await world.enroll('tokyo'));
      const answer = await revokeAs(world, identity, { lease_id: first.claims.lease_id }, 'tokyo');
      const end = clone.claims.grace_ends_at;
      expect(answer).toMatchObject({ revoked_leases: 2, effective_at: Date.parse(end) });
      await expect(renew(identity, device, clone.answer.lease)).rejects.toMatchObject({
        message: `the license of the device ${device.device_id} is revoked; its issued leases work until ${end}`,
      });
      const { read } = identity.storage;
      const other = await getLease(read, world.now, neighbour.claims.lease_id);
      expect(other.state).toBe('valid');
      world.now += 30 * DAY;
      await expect(renew(identity, device)).rejects.toMatchObject({
        message: `the license of the device ${device.device_id} is revoked`,
      });
    });

    test('a revoked installation gets no lease until it is reinstated', async () => {
      const { identity, caller } = world;
      const devices = [await world.enroll('tokyo'), await world.enroll('tokyo')];
      const leases = [];
      for (const device of devices) leases.push((await renew(identity, device)).answer.lease);
      const elsewhere = await world.enroll('osaka');
      const answer = await revokeAs(world, identity, { deployment_id: 'tokyo' }, 'tokyo');
      expect(answer.revoked_leases).toBe(2);
      for (const [i, device] of devices.entries()) {
        await expect(renew(identity, device, leases[i])).rejects.toMatchObject({
          code: 'license_revoked',
        });
      }
      await expect(issueLease(identity, caller, { deployment_id: 'tokyo' })).rejects.toMatchObject({
        code: 'license_revoked',
      });
      await renew(identity, elsewhere);

      world.now += HOUR;
      await reinstateInstallation(identity, 'operator', 'tokyo');
      await renew(identity, devices[0]!, leases[0]);
      await issueLease(identity, caller, { deployment_id: 'tokyo' });
    });

    test('a lease that was revoked individually stays revoked when its installation is reinstated', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      const { answer, claims } = await renew(identity, device);
      await revokeAs(world, identity, { deployment_id: 'tokyo' }, 'tokyo');
      await revokeAs(world, identity, { lease_id: claims.lease_id }, 'tokyo');
      await reinstateInstallation(identity, 'operator', 'tokyo');
      await expect(renew(identity, device, answer.lease)).rejects.toMatchObject({
        code: 'license_revoked',
      });
    });

    test('without enforcement, revoked leases are renewed, and the response says so', async () => {
      const lenient = world.with({ policy: { registry_enforced: false } });
      const device = await world.enroll('tokyo');
      const { answer } = await renew(lenient, device);
      const revoked = await revokeAs(world, lenient, { deployment_id: 'tokyo' }, 'tokyo');
      expect(revoked.registry_enforced).toBe(false);
      await renew(lenient, device, answer.lease);
    });

    test('revoking again changes nothing and returns the same time', async () => {
      const { identity } = world;
      const device = await world.enroll('tokyo');
      await renew(identity, device);
      const first = await revokeAs(world, identity, { deployment_id: 'tokyo' }, 'tokyo');
      world.now += HOUR;
      const again = await revokeAs(world, identity, { deployment_id: 'tokyo' }, 'tokyo');
      expect(again).toEqual({ ...first, revoked_leases: 0 });
      world.now += 30 * DAY;
      const late = await revokeAs(world, identity, { deployment_id: 'tokyo' }, 'tokyo');
      expect(late.effective_at).toBeNull();
      const revokes = (await actions()).filter((name) => name === 'admin.identity.license.revoke');
      expect(revokes).toHaveLength(1);
    });

    test('revoking needs the right confirmation and a step-up for this target', async () => {
      const { identity, caller } = world;
      const device = await world.enroll('tokyo');
      await renew(identity, device);
      const target = { deployment_id: 'tokyo' };
      const attempt = (confirm: string, step_up_token: string | undefined): Promise<unknown> =>
        revoke(identity, caller, target, { reason: 'unpaid', confirm, step_up_token });
      const good = await stepUp(identity, world.now, 'deployment:tokyo');
      await expect(attempt('osaka', good)).rejects.toMatchObject({ code: 'confirmation_mismatch' });
      await expect(attempt('tokyo', undefined)).rejects.toMatchObject({ reason: 'missing' });
      const other = await stepUp(identity, world.now, 'deployment:osaka');
      await expect(attempt('tokyo', other)).rejects.toMatchObject({ reason: 'other_target' });
      world.now += 300_000;
      await expect(attempt('tokyo', good)).rejects.toMatchObject({ reason: 'expired' });
      const fresh = await stepUp(identity, world.now, 'deployment:tokyo');
      await attempt('tokyo', fresh);
      await expect(attempt('tokyo', fresh)).rejects.toMatchObject({ reason: 'used' });
    });

    test('a revocation that cannot be recorded does not happen', async () => {
      const { identity, database } = world;
      const device = await world.enroll('tokyo');
      const { answer, claims } = await renew(identity, device);
      await database.execute(
        kind === 'sqlite'
          ? `create trigger no_audit before insert on audit_entries
             begin select raise(abort, 'disk full'); end`
          : `create function no_audit() returns trigger language plpgsql
               as $$ begin raise 'disk full'; end $$;
             create trigger no_audit before insert on audit_entries execute function no_audit()`,
      );
      await expect(
        revokeAs(world, identity, { deployment_id: 'tokyo' }, 'tokyo'),
      ).rejects.toMatchObject({ code: 'storage_unavailable' });
      await database.execute(
        kind === 'sqlite' ? 'drop trigger no_audit' : 'drop trigger no_audit on audit_entries',
      );
      const lease = await getLease(identity.storage.read, world.now, claims.lease_id);
      expect(lease.state).toBe('valid');
      await renew(identity, device, answer.lease);
    });
  });

  test('without a usable key no lease is issued, and the error has the reason', async () => {
    const { identity, caller } = world;
    const former = identity.signer;
    await newSigner(identity);
    const device = await world.enroll('tokyo');
    // A server with the former key keeps using it until it is restarted.
    await renew(world.with({ signer: former }), device);
    await identity.storage.write((tx) =>
      tx.updateTable('signing_keys').set({ status: 'retired' }).execute(),
    );
    await expect(issueLease(identity, caller, { deployment_id: 'tokyo' })).rejects.toMatchObject({
      code: 'license_lease_unavailable',
      reason: 'retired_key',
    });
  });

  test('leases are listed by installation and state, page by page', async () => {
    const { identity, caller } = world;
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      const body = await issueLease(identity, caller, {
        deployment_id: 'tokyo',
        ttl_seconds: 3600,
      });
      ids.unshift((JSON.parse(body) as { lease_id: string }).lease_id);
      world.now += 1000;
    }
    await issueLease(identity, caller, { deployment_id: 'osaka' });
    const { read } = identity.storage;
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const filter = { deployment_id: 'tokyo', state: 'valid' } as const;
      const page = await listLeases(read, world.now, filter, { limit: 2, cursor });
      found.push(...page.items.map(({ lease_id }) => lease_id));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    expect(found).toEqual(ids);
    world.now += 2 * HOUR;
    const inGrace = await listLeases(read, world.now, { state: 'grace' }, { limit: 10 });
    expect(inGrace.items.map(({ lease_id }) => lease_id)).toEqual(ids);
  });
});
