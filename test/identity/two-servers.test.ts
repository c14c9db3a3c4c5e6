import { endFault, GENESIS } from '../../src/base/hash-chain.ts';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readAudit, verifyAudit } from '../../src/identity/audit.ts';
import type { Identity } from '../../src/identity/context.ts';
import { issueLease } from '../../src/identity/issue.ts';
import { revokeDevice } from '../../src/identity/devices.ts';
import { renewLease } from '../../src/identity/renew-lease.ts';
import type { DevicesTable } from '../../src/storage/tables.ts';
import { newLeaseWorld, proofOf, renew, revokeAs, type LeaseWorld } from './lease-world.ts';
import { isAtLength } from '../length.ts';

let world: LeaseWorld;
let servers: readonly [Identity, Identity];

beforeEach(async () => {
  world = await newLeaseWorld('postgres');
  const { storage } = await world.another();
  servers = [world.identity, { ...world.identity, storage }];
});
afterEach(() => world.close());

/** Alternates between the two servers. */
const either = (turn: number): Identity => servers[turn % 2]!;

test('two servers that issue and revoke in parallel keep what they returned, and the log is valid', async () => {
  const devices: DevicesTable[] = [];
  for (let i = 0; i < 6; i++) devices.push(await world.enroll(i < 3 ? 'tokyo' : 'osaka'));
  const given: string[] = [];
  const count = isAtLength ? 60 : 20;
  const work = Array.from({ length: count }, async (_, i) => {
    if (i === count / 2) return revokeAs(world, either(i), { deployment_id: 'tokyo' }, 'tokyo');
    const device = devices[i % 6]!;
    try {
      const { claims } = await renew(either(i), device);
      return given.push(claims.lease_id);
    } catch (error) {
      expect(error).toMatchObject({ code: 'license_revoked' });
      return expect(device.deployment_id).toBe('tokyo');
    }
  });
  await Promise.all(work);
  for (const [i, device] of devices.entries()) {
    const again = renew(either(i), device);
    if (device.deployment_id === 'osaka') given.push((await again).claims.lease_id);
    else await expect(again).rejects.toMatchObject({ code: 'license_revoked' });
  }

  const { read } = world.identity.storage;
  const rows = await read.selectFrom('license_leases').select('lease_id').execute();
  expect(rows.map(({ lease_id }) => lease_id).sort()).toEqual(given.sort());
  const { entries, head } = await readAudit(read, 0, 1000);
  const last = verifyAudit(GENESIS, entries);
  expect(last).toEqual(head);
  expect(endFault(head, head)).toBeUndefined();
  const renewals = entries.filter(({ action }) => action === 'identity.license.renew');
  expect(renewals.map(({ target }) => target.replace('lease:', '')).sort()).toEqual(given);
});

test('one renewal that is sent to both servers in parallel gets the same bytes from both', async () => {
  const device = await world.enroll('tokyo');
  const renewal_id = randomUUID();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => renewLease(either(i), proofOf(device), { renewal_id })),
  );
  expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
  expect(answers.filter(({ fresh }) => fresh)).toHaveLength(1);
});

test('a lease is issued before the other server revokes the installation, or not at all', async () => {
  const { caller } = world;
  const issued = Array.from({ length: 20 }, (_, i) =>
    issueLease(either(i), caller, { deployment_id: 'tokyo' }).then(
      () => 'issued',
      (error: { code: string }) => error.code,
    ),
  );
  const answer = await revokeAs(world, servers[1], { deployment_id: 'tokyo' }, 'tokyo');
  const outcomes = await Promise.all(issued);
  const count = outcomes.filter((outcome) => outcome === 'issued').length;
  const refused = outcomes.filter((outcome) => outcome === 'license_revoked').length;
  expect(count + refused).toBe(20);
  expect(answer.revoked_leases).toBe(count);
});

test('a proof that both servers receive in parallel is used once', async () => {
  const device = await world.enroll('tokyo');
  const proof = proofOf(device);
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      renewLease(either(i), proof, { renewal_id: randomUUID() }).then(
        () => 'renewed',
        (error: { reason: string }) => error.reason,
      ),
    ),
  );
  expect(outcomes.toSorted()).toEqual(['renewed', ...Array<string>(9).fill('replayed')].toSorted());
});

test('two renewals of one lease on two servers are reported as a possible clone once', async () => {
  const device = await world.enroll('tokyo');
  const { answer } = await renew(either(0), device);
  const renewals = await Promise.all([0, 1].map((i) => renew(either(i), device, answer.lease)));
  const warnings = renewals.flatMap(({ renewed }) => renewed.warnings.map(({ code }) => code));
  expect(warnings).toEqual(['credential_cloned']);
});

test('an issue_id that both servers receive in parallel issues one lease', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      issueLease(either(i), world.caller, { deployment_id: 'tokyo', issue_id: 'same' }).then(
        () => 'issued',
        (error: { reason: string }) => error.reason,
      ),
    ),
  );
  const repeated = Array<string>(9).fill('already_issued');
  expect(outcomes.toSorted()).toEqual(['issued', ...repeated].toSorted());
});

test('no device gets a lease from one server after the other has revoked the device', async () => {
  const devices = await Promise.all(Array.from({ length: 8 }, () => world.enroll('tokyo')));
  const renewAll = (): Promise<string>[] =>
    devices.map((device) =>
      renewLease(servers[1], proofOf(device), { renewal_id: randomUUID() }).then(
        () => 'renewed',
        (error: { reason: string }) => error.reason,
      ),
    );
  const first = renewAll();
  const revoked = devices.map(({ device_id }) =>
    revokeDevice(servers[0], 'operator', device_id, 'stolen'),
  );
  await Promise.all([...first, ...renewAll(), ...revoked]);
  expect(await Promise.all(renewAll())).toEqual(devices.map(() => 'revoked_device'));

  const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
  for (const { device_id } of devices) {
    const actions = entries
      .filter(
        (entry) => entry.actor === `device:${device_id}` || entry.target === `device:${device_id}`,
      )
      .map(({ action }) => action);
    expect(actions.at(-1)).toBe('admin.identity.device.revoke');
  }
});
