import { createContract } from '../../../src/identity/contracts.ts';
import { createCustomer } from '../../../src/identity/customers.ts';
import { createPlan } from '../../../src/identity/plans.ts';
import type { Identity } from '../../../src/identity/context.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import type { DevicesTable, LicenseLeasesTable } from '../../../src/storage/tables.ts';
import { USUAL_POLICY } from '../../identity/policy.ts';

const DAY = 86_400_000;
/** Id of the key that signed the seeded leases: the example key of RFC 8037. */
export const FLEET_KEY = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k';
const FLEET_KEY_X = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
const ENTITLEMENTS = ['kb_federation', 'live_trading'];

/**
 * Registers installations with one device and its latest lease each, as after a week of operation:
 * most have renewed, some are silent, in grace or expired.
 * @param now milliseconds since the Unix epoch.
 * @param first number of installations that exist already.
 */
export async function seedFleet(
  storage: Storage,
  now: number,
  count: number,
  first = 0,
): Promise<void> {
  if (first === 0) await seedVendor(storage, now);
  const unrevoked = { revoked_at: null, revoked_by: null, revoked_reason: null };
  const numbers = Array.from({ length: count - first }, (_, i) =>
    String(first + i).padStart(5, '0'),
  );
  await storage.write(async (tx) => {
    for (let from = 0; from < numbers.length; from += 500) {
      const some = numbers.slice(from, from + 500);
      await tx
        .insertInto('deployments')
        .values(
          some.map((number) => ({
            deployment_id: `fleet-${number}`,
            name: `Desk ${number}`,
            created_at: now,
            contract_id: 'acme-pro',
            ...unrevoked,
          })),
        )
        .execute();
      await tx.insertInto('devices').values(some.map(deviceOf)).execute();
      await tx.insertInto('license_leases').values(some.map(leaseOf)).execute();
    }
  });

  function deviceOf(number: string): DevicesTable {
    return {
      device_id: `device-${number}`,
      x: number,
      name: `host-${number}`,
      replaces: null,
      deployment_id: `fleet-${number}`,
      enrolled_at: now,
      first_used_at: now,
      machine_hash: null,
      ...unrevoked,
    };
  }

  function leaseOf(number: string): LicenseLeasesTable {
    const left = Number(number) % 100;
    // In every hundred, one is expired, one in grace and one silent.
    const expires_at = now + ([-5, -1, 0.2][left] ?? 1.1 + (left % 6)) * DAY;
    const lease_id = `0198c0de-0000-7000-8000-0000000${number}`;
    return {
      lease_id,
      lineage_id: lease_id,
      deployment_id: `fleet-${number}`,
      customer_id: 'acme',
      contract_id: 'acme-pro',
      device_id: `device-${number}`,
      public_key_id: FLEET_KEY,
      ...unrevoked,
      previous_lease_id: null,
      renewal_id: null,
      issued_by: `device:device-${number}`,
      entitlements: JSON.stringify(ENTITLEMENTS),
      issued_at: expires_at - 7 * DAY,
      expires_at,
      grace_ends_at: expires_at + 3 * DAY,
    };
  }
}

async function seedVendor(storage: Storage, now: number): Promise<void> {
  const signer = new ServiceError('license_lease_unavailable', 'this test issues no leases');
  const identity: Identity = { storage, clock: () => now, policy: USUAL_POLICY, signer };
  await createCustomer(identity, 'operator', { customer_id: 'acme', name: 'Acme Trading' });
  await createPlan(identity, 'operator', {
    plan_id: 'pro',
    name: 'Pro',
    entitlements: ENTITLEMENTS,
  });
  const contract = { contract_id: 'acme-pro', customer_id: 'acme', plan_id: 'pro' };
  const ends_at = Math.floor(now / 1000) * 1000 + 300 * DAY;
  await createContract(identity, 'operator', { ...contract, ends_at });
  await storage.write((tx) =>
    tx
      .insertInto('signing_keys')
      .values({
        public_key_id: FLEET_KEY,
        x: FLEET_KEY_X,
        status: 'retiring',
        retired_at: null,
        activated_at: now - 90 * DAY,
        retiring_at: now - 30 * DAY,
      })
      .execute(),
  );
}
