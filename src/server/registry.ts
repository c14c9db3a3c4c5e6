import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import * as api from '../api/registry.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import {
  createContract,
  getContract,
  lastLeaseEnd,
  listContracts,
  updateContract,
  type Contract,
} from '../identity/contracts.ts';
import {
  createCustomer,
  getCustomer,
  listCustomers,
  type Customer,
} from '../identity/customers.ts';
import {
  createInstallation,
  getInstallation,
  listInstallations,
  reinstateInstallation,
  type Installation,
} from '../identity/installations.ts';
import type { Identity } from '../identity/context.ts';
import { refuseOutside } from '../identity/narrowing.ts';
import { createPlan, getPlan, listPlans, updatePlan, type Plan } from '../identity/plans.ts';
import type { App, Services } from './services.ts';
import { actorOf, registrarOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import { serializePage } from './serialize-page.ts';

export function addRegistry(app: App, { identity }: Services): void {
  const { read } = identity.storage;
  const named = (installations: readonly Installation[]): Promise<NamedInstallation[]> =>
    withNames(read, installations, 'revoked_by');

  app.openapi(api.createCustomer, async (c) => {
    const create = (service: Identity) => createCustomer(service, actorOf(c), c.req.valid('json'));
    return c.json(await createOnce(c, identity, create, serializeCustomer), 201);
  });
  app.openapi(api.listCustomers, async (c) => {
    const page = await listCustomers(read, c.req.valid('query'));
    return c.json(serializePage(page, serializeCustomer), 200);
  });
  app.openapi(api.getCustomer, async (c) => {
    const { customer_id } = c.req.valid('param');
    return c.json(serializeCustomer(await getCustomer(read, customer_id)), 200);
  });

  app.openapi(api.createPlan, async (c) => {
    const create = (service: Identity) => createPlan(service, actorOf(c), c.req.valid('json'));
    return c.json(await createOnce(c, identity, create, serializePlan), 201);
  });
  app.openapi(api.listPlans, async (c) => {
    const page = await listPlans(read, c.req.valid('query'));
    return c.json(serializePage(page, serializePlan), 200);
  });
  app.openapi(api.getPlan, async (c) => {
    const { plan_id } = c.req.valid('param');
    return c.json(serializePlan(await getPlan(read, plan_id)), 200);
  });
  app.openapi(api.updatePlan, async (c) => {
    const { plan_id } = c.req.valid('param');
    const plan = await updatePlan(identity, registrarOf(c), plan_id, c.req.valid('json'));
    return c.json(serializePlan(plan), 200);
  });

  app.openapi(api.createContract, async (c) => {
    const { ends_at, ...rest } = c.req.valid('json');
    const request = { ...rest, ends_at: Date.parse(ends_at) };
    const create = (service: Identity) => createContract(service, registrarOf(c), request);
    return c.json(await createOnce(c, identity, create, serializeContract), 201);
  });
  app.openapi(api.listContracts, async (c) => {
    const { customer_id, ...request } = c.req.valid('query');
    const within = c.get('caller')!.narrowing;
    const page = await listContracts(read, { customer_id, within }, request);
    return c.json(serializePage(page, serializeContract), 200);
  });
  app.openapi(api.getContract, async (c) => {
    const { contract_id } = c.req.valid('param');
    await refuseOutside(read, c.get('caller')!, { contract_id });
    return c.json(serializeContract(await getContract(read, contract_id)), 200);
  });
  app.openapi(api.updateContract, async (c) => {
    const { contract_id } = c.req.valid('param');
    const { ends_at, ...rest } = c.req.valid('json');
    const changes = { ...rest, ends_at: ends_at === undefined ? undefined : Date.parse(ends_at) };
    const contract = await updateContract(identity, registrarOf(c), contract_id, changes);
    const last = formatInstantOrNull(await lastLeaseEnd(read, contract_id, identity.clock()));
    return c.json({ ...serializeContract(contract), last_lease_ends_at: last }, 200);
  });

  app.openapi(api.createInstallation, async (c) => {
    const create = (service: Identity) =>
      createInstallation(service, registrarOf(c), c.req.valid('json'));
    const answer = (made: Installation) =>
      serializeInstallation({ ...made, revoked_by_name: null });
    return c.json(await createOnce(c, identity, create, answer), 201);
  });
  app.openapi(api.listInstallations, async (c) => {
    const { contract_id, ...request } = c.req.valid('query');
    const within = c.get('caller')!.narrowing;
    const page = await listInstallations(read, { contract_id, within }, request);
    const items = await named(page.items);
    return c.json(serializePage({ ...page, items }, serializeInstallation), 200);
  });
  app.openapi(api.getInstallation, async (c) => {
    const { deployment_id } = c.req.valid('param');
    await refuseOutside(read, c.get('caller')!, { deployment_id });
    const [installation] = await named([await getInstallation(read, deployment_id)]);
    return c.json(serializeInstallation(installation!), 200);
  });
  app.openapi(api.reinstateInstallation, async (c) => {
    const { deployment_id } = c.req.valid('param');
    const installation = await reinstateInstallation(identity, registrarOf(c), deployment_id);
    return c.json(serializeInstallation((await named([installation]))[0]!), 200);
  });
}

function serializeCustomer(customer: Customer): api.Customer {
  return { ...customer, created_at: formatInstant(customer.created_at) };
}

function serializePlan({ entitlements, ...plan }: Plan): api.Plan {
  return { ...plan, entitlements: [...entitlements], created_at: formatInstant(plan.created_at) };
}

function serializeContract({ entitlements, ...contract }: Contract): api.Contract {
  return {
    ...contract,
    entitlements: [...entitlements],
    ends_at: formatInstant(contract.ends_at),
    created_at: formatInstant(contract.created_at),
  };
}

type NamedInstallation = WithNames<Installation, 'revoked_by'>;

function serializeInstallation(installation: NamedInstallation): api.Installation {
  return {
    ...installation,
    created_at: formatInstant(installation.created_at),
    revoked_at: formatInstantOrNull(installation.revoked_at),
  };
}
