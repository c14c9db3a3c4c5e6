import { z } from '@hono/zod-openapi';
import { ID_FORMAT, ID_FORMAT_RULE } from '../base/id-format.ts';
import {
  actorName,
  administrator,
  jsonResponse,
  defineRoute,
  id,
  IdempotencyKey,
  jsonBody,
  page,
  pageQuery,
  text,
  time,
} from './http.ts';
import { BINDINGS } from '../lease/claims.ts';
import { entitlements } from './leases.ts';

/** Step-up header of operations that can extend what a customer may use. */
function stepUpFor(target: string) {
  return {
    'service-step-up': z
      .string()
      .optional()
      .openapi({
        description: `Token of a step-up for \`identity.license.give\` and \`${target}\`. Required, and then used, only if the request grants more than before, such as a later end, another entitlement, or a longer TTL or grace period.`,
        example: 'step-up-token',
      }),
  };
}

const parts = { tags: ['Registry'], security: administrator('license') };

const name = text(200);

/** Id of a new object; the server makes one by default. */
function newId(example: string) {
  return z
    .string()
    .regex(ID_FORMAT, ID_FORMAT_RULE)
    .optional()
    .openapi({ example, description: 'Permanent id; made by the server if absent.' });
}

const ttl = z.int().min(1).nullable().openapi({ example: 604_800 });
const grace = z.int().min(0).nullable().openapi({ example: 259_200 });

/** Lease terms of plans; those of a contract extend or replace the terms of its plan. */
const conditions = {
  entitlements,
  ttl_seconds: ttl.describe(
    'Lifetime of leases in seconds. Null uses the setting of the server for a plan, and the value of the plan for a contract.',
  ),
  grace_period_seconds: grace.describe(
    'Time in seconds for which an expired lease still works. Null has the same meaning as above.',
  ),
};
const optionalConditions = z.object(conditions).partial().shape;

export const Customer = z
  .strictObject({ customer_id: z.string(), name: z.string(), created_at: time })
  .openapi('Customer');

export type Customer = z.infer<typeof Customer>;

const NewCustomer = z.strictObject({ customer_id: newId('bolt'), name }).openapi('NewCustomer');

export const createCustomer = defineRoute({
  ...parts,
  method: 'post',
  path: '/identity/customers',
  operationId: 'createCustomer',
  summary: 'Register a customer',
  idempotent: true,
  request: {
    body: jsonBody(NewCustomer, { customer: { customer_id: 'bolt', name: 'Bolt Capital' } }),
  },
  responses: { 201: jsonResponse('The customer.', Customer) },
  errors: ['conflict'],
});

export const listCustomers = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/customers',
  operationId: 'listCustomers',
  summary: 'List the customers',
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of customers, by id.', page(Customer)) },
});

export const getCustomer = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/customers/{customer_id}',
  operationId: 'getCustomer',
  summary: 'Show a customer',
  request: { params: z.strictObject({ customer_id: id('acme') }) },
  responses: { 200: jsonResponse('The customer.', Customer) },
  errors: ['not_found'],
});

const purpose = {
  product: id('trader')
    .nullable()
    .describe(
      'Product of leases under the plan; programs of other products reject them. Null uses the setting `license_product` of the server.',
    ),
  binding: z.enum(BINDINGS).openapi({
    description:
      'What leases under the plan are bound to: nothing, the private key of the device, or its machine id.',
    example: 'device',
  }),
};
const optionalPurpose = z.object(purpose).partial().shape;

export const Plan = z
  .strictObject({
    plan_id: z.string(),
    name: z.string(),
    ...conditions,
    ...purpose,
    created_at: time,
  })
  .openapi('Plan', { description: 'Lease terms that are sold to customers.' });

export type Plan = z.infer<typeof Plan>;

const NewPlan = z
  .strictObject({ plan_id: newId('basic'), name, ...optionalConditions, ...optionalPurpose })
  .openapi('NewPlan');

export const createPlan = defineRoute({
  ...parts,
  method: 'post',
  path: '/identity/plans',
  operationId: 'createPlan',
  summary: 'Create a plan',
  idempotent: true,
  request: {
    body: jsonBody(NewPlan, {
      plan: { plan_id: 'basic', name: 'Basic', entitlements: ['live_trading'] },
    }),
  },
  responses: { 201: jsonResponse('The plan.', Plan) },
  errors: ['conflict'],
});

export const listPlans = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/plans',
  operationId: 'listPlans',
  summary: 'List the plans',
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of plans, by id.', page(Plan)) },
});

const planPath = z.strictObject({ plan_id: id('pro') });

export const getPlan = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/plans/{plan_id}',
  operationId: 'getPlan',
  summary: 'Show a plan',
  request: { params: planPath },
  responses: { 200: jsonResponse('The plan.', Plan) },
  errors: ['not_found'],
});

const PlanChanges = z
  .strictObject({ name: name.optional(), ...optionalConditions, ...optionalPurpose })
  .openapi('PlanChanges', { description: 'Absent fields keep their values.' });

export const updatePlan = defineRoute({
  ...parts,
  method: 'patch',
  path: '/identity/plans/{plan_id}',
  operationId: 'updatePlan',
  summary: 'Change a plan',
  description: 'Applies to the next lease of every customer with the plan.',
  request: {
    params: planPath,
    headers: z.object(stepUpFor('plan:ID')),
    body: jsonBody(PlanChanges, { change: { entitlements: ['live_trading', 'kb_federation'] } }),
  },
  responses: { 200: jsonResponse('The updated plan.', Plan) },
  errors: ['not_found', 'step_up_required'],
});

export const Contract = z
  .strictObject({
    contract_id: z.string(),
    customer_id: z.string(),
    plan_id: z.string(),
    ...conditions,
    ends_at: time,
    created_at: time,
  })
  .openapi('Contract', { description: 'The plan that a customer has bought, and its end.' });

export type Contract = z.infer<typeof Contract>;

const endsAt = time.openapi({
  description: 'Whole seconds. No lease is valid beyond this time.',
  example: '2027-01-01T00:00:00Z',
});

const NewContract = z
  .strictObject({
    contract_id: newId('acme-2027'),
    customer_id: id('acme'),
    plan_id: id('pro'),
    ends_at: endsAt,
    ...optionalConditions,
  })
  .openapi('NewContract');

export const createContract = defineRoute({
  ...parts,
  method: 'post',
  path: '/identity/contracts',
  operationId: 'createContract',
  summary: 'Register a contract',
  idempotent: true,
  description: 'Requires a step-up for the customer.',
  request: {
    headers: z.object({ ...IdempotencyKey.shape, ...stepUpFor('customer:ID') }),
    body: jsonBody(NewContract, {
      contract: {
        contract_id: 'acme-2027',
        customer_id: 'acme',
        plan_id: 'pro',
        entitlements: ['kb_federation'],
        ends_at: '2099-01-01T00:00:00Z',
      },
    }),
  },
  responses: { 201: jsonResponse('The contract.', Contract) },
  errors: ['not_found', 'conflict', 'step_up_required'],
});

export const listContracts = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/contracts',
  operationId: 'listContracts',
  narrowable: true,
  summary: 'List the contracts',
  request: { query: z.strictObject({ ...pageQuery, customer_id: id('acme').optional() }) },
  responses: { 200: jsonResponse('A page of contracts, by id.', page(Contract)) },
  errors: ['not_found'],
});

const contractPath = z.strictObject({ contract_id: id('acme-2026') });

export const getContract = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/contracts/{contract_id}',
  operationId: 'getContract',
  narrowable: true,
  summary: 'Show a contract',
  request: { params: contractPath },
  responses: { 200: jsonResponse('The contract.', Contract) },
  errors: ['not_found'],
});

const ContractChanges = z
  .strictObject({
    plan_id: id('pro').optional(),
    ends_at: endsAt.optional(),
    ...optionalConditions,
  })
  .openapi('ContractChanges', { description: 'Absent fields keep their values.' });

export const updateContract = defineRoute({
  ...parts,
  method: 'patch',
  path: '/identity/contracts/{contract_id}',
  operationId: 'updateContract',
  summary: 'Change or end a contract',
  description:
    'Applies to the next lease of each installation under the contract. An end in the past ends the contract now; leases that were already issued work until `last_lease_ends_at`.',
  request: {
    params: contractPath,
    headers: z.object(stepUpFor('contract:ID')),
    body: jsonBody(ContractChanges, { change: { ends_at: '2099-01-01T00:00:00Z' } }),
  },
  responses: {
    200: jsonResponse(
      'The updated contract.',
      z
        .strictObject({
          ...Contract.shape,
          last_lease_ends_at: time
            .nullable()
            .describe(
              'Time when the last lease under the contract stops working; null if none works.',
            ),
        })
        .openapi('ChangedContract'),
    ),
  },
  errors: ['not_found', 'step_up_required'],
});

export const Installation = z
  .strictObject({
    deployment_id: z.string(),
    contract_id: z.string(),
    name: z.string(),
    created_at: time,
    revoked_at: time
      .nullable()
      .describe('Time of revocation, after which the installation gets no leases.'),
    revoked_by: z.string().nullable(),
    revoked_by_name: actorName,
    revoked_reason: z.string().nullable(),
  })
  .openapi('Deployment', { description: 'An installation, to which leases are issued.' });

export type Installation = z.infer<typeof Installation>;

const NewInstallation = z
  .strictObject({ deployment_id: newId('acme-london'), contract_id: id('acme-2026'), name })
  .openapi('NewDeployment');

export const createInstallation = defineRoute({
  ...parts,
  method: 'post',
  path: '/identity/deployments',
  operationId: 'createDeployment',
  summary: 'Register an installation',
  idempotent: true,
  request: {
    body: jsonBody(NewInstallation, {
      deployment: { deployment_id: 'acme-london', contract_id: 'acme-2026', name: 'London' },
    }),
  },
  responses: { 201: jsonResponse('The installation.', Installation) },
  errors: ['not_found', 'conflict'],
});

export const listInstallations = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/deployments',
  operationId: 'listDeployments',
  narrowable: true,
  summary: 'List the installations',
  request: { query: z.strictObject({ ...pageQuery, contract_id: id('acme-2026').optional() }) },
  responses: { 200: jsonResponse('A page of installations, by id.', page(Installation)) },
  errors: ['not_found'],
});

const installationPath = z.strictObject({ deployment_id: id('acme-tokyo') });

export const getInstallation = defineRoute({
  ...parts,
  method: 'get',
  path: '/identity/deployments/{deployment_id}',
  operationId: 'getDeployment',
  narrowable: true,
  summary: 'Show an installation',
  request: { params: installationPath },
  responses: { 200: jsonResponse('The installation.', Installation) },
  errors: ['not_found'],
});

export const reinstateInstallation = defineRoute({
  ...parts,
  method: 'post',
  path: '/identity/deployments/{deployment_id}/reinstate',
  operationId: 'reinstateDeployment',
  summary: 'Reinstate a revoked installation',
  description:
    'Devices of the installation can renew leases again. Leases and devices that were revoked individually stay revoked.',
  request: { params: installationPath, headers: z.object(stepUpFor('deployment:ID')) },
  responses: { 200: jsonResponse('The updated installation.', Installation) },
  errors: ['not_found', 'step_up_required'],
});
