import type { ChainHead } from '../../src/base/hash-chain.ts';
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  addAdministrator,
  disableAdministrator,
  resetAdministrator,
} from '../../src/identity/administrators.ts';
import { newerEntries } from '../../src/identity/audit-file.ts';
import { auditHead, readAudit } from '../../src/identity/audit.ts';
import { updateContract } from '../../src/identity/contracts.ts';
import { reinstateInstallation } from '../../src/identity/installations.ts';
import { revokeDevice } from '../../src/identity/devices.ts';
import { retireKey } from '../../src/identity/signing-keys.ts';
import { createPlan, updatePlan } from '../../src/identity/plans.ts';
import { reapplyAudit, type ReappliedAudit } from '../../src/identity/reapply-audit.ts';
import { backupSqlite } from '../../src/storage/sqlite-backup.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { DAY, newLeaseWorld, newSigner, renew, revokeAs, type LeaseWorld } from './lease-world.ts';
import { PASSWORD } from './people.ts';
import { isAtLength } from '../length.ts';

let world: LeaseWorld;
let backup: string;
let head: ChainHead;
let restored: Storage | undefined;

beforeEach(async () => {
  world = await newLeaseWorld('sqlite');
  Object.assign(world, { identity: world.with({ policy: { registry_enforced: true } }) });
});
afterEach(async () => {
  await restored?.close();
  restored = undefined;
  await rm(backup, { force: true });
  await world.close();
});

async function back(): Promise<void> {
  const { file } = world.database.location as { readonly file: string };
  backup = `${file}.backup`;
  await backupSqlite(file, backup, { force: false });
  head = await auditHead(world.identity.storage.read);
}

/** Restores the backup, and applies the later entries of the audit log. */
async function replay(): Promise<{
  readonly db: Storage['read'];
  readonly result: ReappliedAudit;
}> {
  const { entries } = await readAudit(world.identity.storage.read, 0, 10_000);
  const storage = (restored = await openStorage({ file: backup }));
  expect(await auditHead(storage.read)).toEqual(head);
  const newer = await newerEntries(storage.read, entries, 'audit.json');
  const result = await storage.write((tx) => reapplyAudit(tx, newer, new Set()));
  return { db: storage.read, result };
}

test('a machine whose lease was revoked gets none, whether or not the backup contains its leases', async () => {
  const [known, unknown, spared] = await Promise.all(
    ['tokyo', 'tokyo', 'osaka'].map((id) => world.enroll(id)),
  );
  const first = await renew(world.identity, known!);
  await renew(world.identity, spared!);
  await back();
  for (const [device, lease] of [
    [known!, first.answer.lease],
    [unknown!, undefined],
  ] as const) {
    const { claims } = await renew(world.identity, device, lease);
    await revokeAs(world, world.identity, { lease_id: claims.lease_id }, 'tokyo');
  }
  const { result } = await replay();
  expect(result.applied).toEqual({ 'admin.identity.license.revoke': 2 });
  expect(result.not_applied).toEqual({ 'identity.license.renew': 2 });
  const identity = { ...world.identity, storage: restored! };
  await expect(renew(identity, known!)).rejects.toMatchObject({ code: 'license_revoked' });
  await expect(renew(identity, unknown!)).rejects.toMatchObject({ code: 'invalid_device_proof' });
  await renew(identity, spared!);
});

test('an installation that was revoked and reinstated is not revoked', async () => {
  await back();
  await revokeAs(world, world.identity, { deployment_id: 'tokyo' }, 'tokyo');
  await revokeAs(world, world.identity, { deployment_id: 'osaka' }, 'osaka');
  await reinstateInstallation(world.identity, 'operator', 'osaka');
  const { db, result } = await replay();
  expect(result).toMatchObject({
    applied: { 'admin.identity.license.revoke': 1 },
    not_applied: { 'admin.identity.deployment.reinstate': 1 },
  });
  const revoked = db.selectFrom('deployments').select('deployment_id');
  expect(await revoked.where('revoked_at', 'is not', null).execute()).toEqual([
    { deployment_id: 'tokyo' },
  ]);
});

test('a contract ends no later and includes no more than after its last update', async () => {
  const { identity } = world;
  const [early, late] = [Date.UTC(2027, 0), Date.UTC(2032, 0)];
  await back();
  const change = (changes: Parameters<typeof updateContract>[3]) =>
    updateContract(identity, 'operator', 'acme-pro', changes);
  await change({ ends_at: early, entitlements: [] });
  const ended = await replay();
  const contract = ended.db.selectFrom('contracts').select(['ends_at', 'entitlements']);
  expect(await contract.execute()).toEqual([{ ends_at: early, entitlements: '[]' }]);
  await restored!.close();
  await rm(backup);

  await back();
  await change({ ends_at: Date.UTC(2026, 6), entitlements: ['kb_federation'] });
  await change({ ends_at: late });
  await updatePlan(identity, 'operator', 'pro', { entitlements: ['byoc_deployments'] });
  const { db, result } = await replay();
  expect(await db.selectFrom('contracts').select(['ends_at', 'entitlements']).execute()).toEqual([
    { ends_at: early, entitlements: '[]' },
  ]);
  expect(await db.selectFrom('plans').select('entitlements').execute()).toEqual([
    { entitlements: '[]' },
  ]);
  expect(result).toMatchObject({
    applied: { 'admin.identity.plan.update': 1 },
    not_applied: { 'admin.identity.contract.update': 1 },
  });
});

test('an update that is applied in part also counts as not applied', async () => {
  const { identity } = world;
  await createPlan(identity, 'operator', { plan_id: 'basic', name: 'Basic' });
  await back();
  const early = Date.UTC(2026, 6);
  await updateContract(identity, 'operator', 'acme-pro', { ends_at: early });
  await updateContract(identity, 'operator', 'acme-pro', { plan_id: 'basic' });
  await updatePlan(identity, 'operator', 'pro', { entitlements: [], binding: 'machine' });
  const { db, result } = await replay();
  const contract = db.selectFrom('contracts').select(['plan_id', 'ends_at']);
  expect(await contract.execute()).toEqual([{ plan_id: 'pro', ends_at: early }]);
  const counts = { 'admin.identity.contract.update': 1, 'admin.identity.plan.update': 1 };
  expect(result).toMatchObject({ applied: counts, not_applied: counts });
});

test.runIf(isAtLength)(
  'revoked devices, retired keys and disabled administrators are withdrawn again',
  async () => {
    const { identity } = world;
    const device = await world.enroll('tokyo');
    const names = ['ada', 'bob'];
    for (const name of names) {
      const factors = { password: PASSWORD, totp_secret: 'JBSWY3DPEHPK3PXP', totp_last_step: 0 };
      const terms = { label: 'test', scopes: ['admin'] as const, expires_in_seconds: 3600 };
      await addAdministrator(identity, name, factors, terms);
    }
    const { signer } = identity;
    await newSigner(identity);
    await back();
    await revokeDevice(identity, 'operator', device.device_id, 'stolen');
    world.now += 30 * DAY;
    if (!('publicKeyId' in signer)) throw signer;
    await retireKey(identity, 'operator', signer.publicKeyId);
    await disableAdministrator(identity, 'ada');
    await resetAdministrator(identity, 'bob', {
      password: `${PASSWORD} 2`,
      totp_secret: 'JBSWY3DPEHPK3PXQ',
      totp_last_step: 0,
    });
    const { db, result } = await replay();
    expect(result).toEqual({
      applied: {
        'admin.identity.device.revoke': 1,
        'admin.identity.key.retire': 1,
        'admin.identity.administrator.disable': 1,
        'admin.identity.administrator.reset': 1,
      },
      not_applied: {},
      keyset_version: 0,
    });
    const [{ revoked_reason } = { revoked_reason: null }] = await db
      .selectFrom('devices')
      .select('revoked_reason')
      .execute();
    expect(revoked_reason).toBe('stolen');
    const keys = db.selectFrom('signing_keys').select('status').where('retired_at', 'is not', null);
    expect(await keys.execute()).toEqual([{ status: 'retired' }]);
    const enabled = db.selectFrom('administrators').select('name').where('disabled_at', 'is', null);
    expect(await enabled.where('name', 'in', names).execute()).toEqual([]);
    const tokens = db.selectFrom('api_tokens').select('label').where('revoked_at', 'is', null);
    expect(await tokens.where('token_id', '<>', 'token').execute()).toEqual([]);
  },
);
