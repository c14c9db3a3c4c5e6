/** Counts what a lease costs on PostgreSQL. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createInstallation } from '../../src/identity/installations.ts';
import { issueLease } from '../../src/identity/issue.ts';
import { costOf } from '../storage/count-statements.ts';
import { newLeaseWorld, renew, type LeaseWorld } from './lease-world.ts';

let world: LeaseWorld;
beforeEach(async () => {
  world = await newLeaseWorld('postgres');
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
});

const AT_ONCE = 50;

test('leases that are issued at the same time share round trips and the write to the audit log', async () => {
  const installations = await addInstallations();
  const issue = (deployment_id: string): Promise<unknown> =>
    issueLease(world.identity, world.caller, { deployment_id });
  expect(await costOf(() => issue('tokyo'))).toEqual({ statements: 11, round_trips: 8 });
  const together = await costOf(() => Promise.all(installations.map(issue)));
  // As many as for one lease, and at most two more for 50 entries of the audit log.
  expect(together.statements).toBeLessThanOrEqual(13);
  expect(together.round_trips).toBeLessThanOrEqual(8);
});

test('renewals that run at the same time share round trips and the write to the audit log', async () => {
  const devices = await Promise.all((await addInstallations()).map((id) => world.enroll(id)));
  const renewed = await Promise.all(devices.map((device) => renew(world.identity, device)));
  const leases = renewed.map(({ answer }) => answer.lease);
  const [device, ...others] = devices;
  const alone = await costOf(() => renew(world.identity, device!, leases[0]));
  expect(alone).toEqual({ statements: 18, round_trips: 11 });
  const together = await costOf(() =>
    Promise.all(others.map((other, i) => renew(world.identity, other, leases[i + 1]))),
  );
  // They are signed before, so that they form a few batches.
  expect(together.statements / others.length).toBeLessThan(7);
  expect(together.round_trips / others.length).toBeLessThan(1);
});

async function addInstallations(): Promise<readonly string[]> {
  const ids = Array.from({ length: AT_ONCE }, (_, i) => `installation-${i}`);
  for (const deployment_id of ids) {
    const about = { deployment_id, contract_id: 'acme-pro', name: deployment_id };
    await createInstallation(world.identity, 'operator', about);
  }
  return ids;
}
