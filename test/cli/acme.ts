import { createContract } from '../../src/identity/contracts.ts';
import type { Identity } from '../../src/identity/context.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import { createPlan } from '../../src/identity/plans.ts';

/** Registers the customer acme with these installations. */
export async function addAcme(
  identity: Identity,
  deployment_ids: readonly string[],
  entitlements: readonly string[] = ['live_trading'],
): Promise<void> {
  const vendor = [identity, 'operator'] as const;
  await createCustomer(...vendor, { customer_id: 'acme', name: 'Acme' });
  await createPlan(...vendor, { plan_id: 'pro', name: 'Pro', entitlements });
  const contract = { contract_id: 'acme-pro', customer_id: 'acme', plan_id: 'pro' };
  await createContract(...vendor, { ...contract, ends_at: Date.UTC(2099, 0) });
  for (const deployment_id of deployment_ids) {
    const installation = { deployment_id, contract_id: 'acme-pro', name: deployment_id };
    await createInstallation(...vendor, installation);
  }
}
