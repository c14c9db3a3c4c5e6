import { newDeviceKey, type DeviceKey } from '../../src/client/device-key.ts';
import { ServiceError } from '../../src/base/errors.ts';
import type { Identity } from '../../src/identity/context.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { hashCode, newCode } from '../../src/identity/secrets.ts';
import { addToken } from '../../src/identity/tokens.ts';
import type { Storage } from '../../src/storage/storage.ts';
import type { Db } from '../../src/storage/tables.ts';
import { USUAL_POLICY } from '../identity/policy.ts';

/** Contents of the registry before the load. */
export interface Vendor {
  /** `Authorization` header of the administrator. */
  readonly authorization: string;
  /** Second factors of the administrator, each valid once. */
  readonly recovery_codes: readonly string[];
  /** One device in each installation. */
  readonly devices: readonly VendorDevice[];
}

export interface VendorDevice {
  readonly key: DeviceKey;
  readonly deployment_id: string;
}

export interface VendorSize {
  readonly installations: number;
  readonly recoveryCodes?: number;
  /** Term of contract and token. */
  readonly years?: number;
}

const YEAR = 365 * 86_400;

/**
 * Adds a customer, installations with a device each, and an administrator to the database, without a
 * server.
 * @param now milliseconds since the Unix epoch, from which contract and token last.
 */
export async function addVendor(
  storage: Storage,
  now: number,
  { installations, recoveryCodes = 0, years = 1 }: VendorSize,
): Promise<Vendor> {
  const signer = new ServiceError('license_lease_unavailable', 'nothing is issued here');
  const identity: Identity = { storage, clock: () => now, policy: USUAL_POLICY, signer };
  await createCustomer(identity, 'operator', { customer_id: 'acme', name: 'Acme' });
  const entitlements = ['live_trading', 'kb_federation'];
  await createPlan(identity, 'operator', { plan_id: 'pro', name: 'Pro', entitlements });
  const contract = { contract_id: 'acme-pro', customer_id: 'acme', plan_id: 'pro' };
  const ends_at = (Math.floor(now / 1000) + years * YEAR) * 1000;
  await createContract(identity, 'operator', { ...contract, ends_at });

  const devices = Array.from({ length: installations }, (_, i) => ({
    key: newDeviceKey(),
    deployment_id: `installation-${i + 1}`,
  }));
  const codes = Array.from({ length: recoveryCodes }, newCode);
  const { token } = await storage.write(async (tx) => {
    for (const device of devices) await insertDevice(tx, now, device);
    await insertAdministrator(tx, now, codes);
    const scopes = ['license', 'admin'] as const;
    const terms = { label: 'load', scopes, expires_in_seconds: years * YEAR };
    return addToken(tx, now, 'operator', 'root', terms);
  });
  return { authorization: `Bearer ${token}`, recovery_codes: codes, devices };
}

async function insertDevice(
  tx: Db,
  now: number,
  { key: { device_id, x }, deployment_id }: VendorDevice,
): Promise<void> {
  const unrevoked = { revoked_at: null, revoked_by: null, revoked_reason: null };
  const named = { deployment_id, name: deployment_id };
  await tx
    .insertInto('deployments')
    .values({ ...named, contract_id: 'acme-pro', created_at: now, ...unrevoked })
    .execute();
  const unused = { replaces: null, first_used_at: null };
  await tx
    .insertInto('devices')
    .values({ ...named, device_id, x, enrolled_at: now, ...unused, ...unrevoked })
    .execute();
}

async function insertAdministrator(tx: Db, now: number, codes: readonly string[]): Promise<void> {
  const administrator_id = 'root';
  const factors = { password_hash: 'none', totp_secret: 'none', totp_last_step: 0 };
  await tx
    .insertInto('administrators')
    .values({ administrator_id, name: 'root', ...factors, created_at: now, disabled_at: null })
    .execute();
  for (const code of codes) {
    const row = { code_hash: hashCode(code), administrator_id, used_at: null };
    await tx.insertInto('recovery_codes').values(row).execute();
  }
}
