import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { searchAudit } from '../../src/identity/audit.ts';
import { identityFigures } from '../../src/identity/figures.ts';
import {
  getLicense,
  LICENSE_STATES,
  listLicenses,
  type LicenseFilter,
} from '../../src/identity/licenses.ts';
import { previewRevocation } from '../../src/identity/revoke.ts';
import { seedFleet } from '../server/console/fleet.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newWorld, type World } from './people.ts';

describe.each(mainlyOn('sqlite'))('the licenses of a fleet on %s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await newWorld(kind);
    await seedFleet(world.identity.storage, world.now, 103);
  });
  afterAll(() => world.close());

  const ids = async (filter: LicenseFilter): Promise<string[]> => {
    const { read } = world.identity.storage;
    const { items } = await listLicenses(read, world.now, filter, { limit: 1000 });
    return items.map(({ deployment_id }) => deployment_id.slice(-3));
  };

  test('each license has one state and is found by it', async () => {
    const found = await Promise.all(LICENSE_STATES.map((state) => ids({ state })));
    expect(found.map(({ length }) => length)).toEqual([99, 2, 2, 0, 0]);
    expect(found.flat().sort()).toEqual(await ids({}));
  });

  test('the metrics count the licenses that are listed as silent', async () => {
    expect(await ids({ silent: true })).toEqual(['000', '001', '002', '100', '101', '102']);
    const figures = await identityFigures(world.identity.storage.read, world.now);
    expect(figures.silent_installations).toBe(6);
  });

  test('a search finds parts of names in any case and ids of leases, and ignores wildcards', async () => {
    expect(await ids({ search: 'desk 0004' })).toHaveLength(10);
    expect(await ids({ search: 'ACME' })).toHaveLength(103);
    expect(await ids({ search: 'device-00042' })).toEqual(['042']);
    expect(await ids({ search: '0198c0de-0000-7000-8000-000000000007' })).toEqual(['007']);
    for (const search of ['desk_', '%', "'", '\\']) expect(await ids({ search })).toEqual([]);
  });

  test('a license is revoked with its newest lease or its installation', async () => {
    const { storage } = world.identity;
    await storage.write(async (tx) => {
      const revoked = { revoked_at: world.now, revoked_by: 'operator', revoked_reason: 'a test' };
      const lease_id = '0198c0de-0000-7000-8000-000000000002';
      await tx
        .updateTable('license_leases')
        .set(revoked)
        .where('lease_id', '=', lease_id)
        .execute();
      const deployment_id = 'fleet-00001';
      await tx
        .updateTable('deployments')
        .set(revoked)
        .where('deployment_id', '=', deployment_id)
        .execute();
    });
    expect(await ids({ state: 'revoked' })).toEqual(['001', '002']);
    expect(await ids({ silent: true })).toEqual(['000', '100', '101', '102']);
    const license = await getLicense(storage.read, world.now, 'fleet-00001');
    expect(license).toMatchObject({ state: 'revoked', silent: false, customer: 'Acme Trading' });
    await expect(getLicense(storage.read, world.now, 'nul\0')).rejects.toThrow('there is no');
  });

  test('a preview shows which devices a revocation affects', async () => {
    const preview = await previewRevocation(world.identity, { deployment_id: 'fleet-00101' });
    expect(preview).toMatchObject({ working_leases: 1, device_ids: ['device-00101'] });
    const lease_id = '0198c0de-0000-7000-8000-000000000100';
    const over = await previewRevocation(world.identity, { lease_id });
    expect(over).toMatchObject({ working_leases: 0, device_ids: [], effective_at: null });
    const { entries } = await searchAudit(world.identity.storage.read, { actor: 'operator' }, 3, 1);
    expect(entries).toMatchObject([{ seq: 2, action: 'admin.identity.plan.create' }]);
  });
});
