import { z } from '@hono/zod-openapi';
import { OFFLINE_REQUEST_TYPE } from '../base/proof-claims.ts';
import { MAX_ENTITLEMENTS } from '../lease/claims.ts';
import { PAYLOAD_TYPE } from '../lease/envelope.ts';
import {
  actorName,
  administrator,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  machineHash,
  page,
  pageQuery,
  stepUpHeader,
  text,
  time,
} from './http.ts';

const entitlement = z
  .string()
  .regex(/^[a-z][a-z0-9_.:-]{0,63}$/, 'must be a name such as live_trading')
  .openapi({ example: 'live_trading' });

export const entitlements = z.array(entitlement).max(MAX_ENTITLEMENTS);

const Envelope = z
  .strictObject({
    payloadType: z.literal(PAYLOAD_TYPE),
    payload: z.base64(),
    signatures: z.array(z.strictObject({ keyid: z.string(), sig: z.base64() })).min(1),
  })
  .openapi('Lease', {
    description:
      'The contents of license_lease.json: a signed lease in a DSSE 1.0.2 envelope, with the claims in canonical JSON as the payload.',
  });

const IssueRequest = z
  .strictObject({
    deployment_id: id('acme-tokyo'),
    entitlements: entitlements
      .optional()
      .describe(
        'By default the entitlements of the plan and the contract, which are also the maximum.',
      ),
    ttl_seconds: z.int().min(1).optional().openapi({ example: 604_800 }),
    grace_period_seconds: z.int().min(0).optional().openapi({ example: 259_200 }),
    customer_id: id('acme')
      .optional()
      .describe(
        'Optional check: the request fails unless the installation belongs to this customer.',
      ),
    issue_id: id('0198c0de-0000-7000-8000-000000000004')
      .optional()
      .describe(
        'Chosen by the caller. A repeated request with the same id issues no second lease, but fails with `conflict`, reason `already_issued`. Excludes `offline_request`, which has its own id.',
      ),
    offline_request: z
      .string()
      .max(65_536)
      .optional()
      .describe(
        `The request of a device without network access: a JWT signed with its key. The header is that of a DeviceProof, except that \`typ\` is \`${OFFLINE_REQUEST_TYPE}\`. The claims are \`iss\`, \`sub\`, \`iat\`, \`jwk\`, \`name\`, \`renewal_id\`, \`lease\` and \`machine_hash\`, the last three as in RenewRequest. The lease is for this device, which is added to the installation if necessary. Within 24 hours, a repeated request with the same terms returns the same bytes while that lease is valid; with other terms, it returns a new lease.`,
      ),
  })
  .openapi('IssueRequest', { description: 'Request of an administrator.' });

const RenewRequest = z
  .strictObject({
    renewal_id: id('0198c0de-0000-7000-8000-000000000001').describe(
      'Chosen and stored by the device before it sends the request. Within 24 hours, a repeated request with the same id returns the same bytes.',
    ),
    lease: Envelope.optional().describe('The lease that the device holds; absent if it has none.'),
    machine_hash: machineHash.optional(),
  })
  .openapi('RenewRequest', {
    description: 'Request of a device; the registry determines entitlements and TTL.',
  });

const Limit = z.strictObject({
  field: z.enum(['ttl_seconds', 'grace_period_seconds']),
  wanted: z.int(),
  granted: z.int(),
  because: z.enum(['contract_end', 'token_maximum', 'server_maximum']),
});

const Warning = z.strictObject({
  code: z.enum(['credential_cloned', 'unknown_lease']),
  detail: z.string(),
});

const given = {
  deployment_id: z.string(),
  entitlements: z.array(z.string()),
  issued_at: time,
  expires_at: time,
  grace_ends_at: time,
  limits: z.array(Limit).describe('Durations that were reduced, and why.'),
  warnings: z
    .array(Warning)
    .describe('Problems that an administrator should investigate; the lease is valid.'),
};

export const LeaseAnswer = z
  .strictObject({ lease: Envelope, lease_id: z.string(), ...given })
  .openapi('LeaseAnswer');

export type LeaseAnswer = z.infer<typeof LeaseAnswer>;

const LeaseRequest = z.union([IssueRequest, RenewRequest]);

export type LeaseRequest = z.infer<typeof LeaseRequest>;

export const createLease = defineRoute({
  method: 'post',
  path: '/auth/license/leases',
  operationId: 'createLease',
  narrowable: true,
  summary: 'Issue or renew a lease',
  description:
    'An administrator states the installation, entitlements and TTL. A device states the lease that it holds; the registry determines the new lease, and the old one remains valid. The registry stores the claims but not the signature, so the signed lease cannot be read again.',
  tags: ['Leases'],
  security: [{ administrator: ['license'] }, { device: [] }],
  request: {
    body: jsonBody(LeaseRequest, {
      administrator: {
        deployment_id: 'acme-tokyo',
        entitlements: ['live_trading'],
        ttl_seconds: 604_800,
      },
      device: { renewal_id: '0198c0de-0000-7000-8000-000000000001' },
    }),
  },
  responses: { 201: jsonResponse('The signed lease.', LeaseAnswer) },
  errors: [
    'license_revoked',
    'contract_ended',
    'not_found',
    'conflict',
    'credential_cloned',
    'idempotency_mismatch',
    'license_lease_unavailable',
  ],
});

export const DryRun = z.strictObject(given).openapi('DryRun');

export type DryRun = z.infer<typeof DryRun>;

const DryRunRequest = z.union([
  IssueRequest.omit({ issue_id: true, offline_request: true }).openapi('IssueDryRun'),
  RenewRequest,
]);

export const dryRunRenewal = defineRoute({
  method: 'post',
  path: '/auth/license/leases/dry-run',
  operationId: 'dryRunRenewal',
  narrowable: true,
  summary: 'Check what issuing or renewing a lease would grant',
  description:
    'Takes the same request as issuing or renewing a lease and makes all checks, but issues nothing. The response contains the terms that would be granted, and the reasons for reductions.',
  tags: ['Leases'],
  security: [{ administrator: ['license'] }, { device: [] }],
  request: {
    body: jsonBody(DryRunRequest, {
      administrator: { deployment_id: 'acme-tokyo', ttl_seconds: 604_800 },
      device: { renewal_id: '0198c0de-0000-7000-8000-000000000001' },
    }),
  },
  responses: { 200: jsonResponse('The terms that would be granted now.', DryRun) },
  errors: [
    'not_allowed',
    'license_revoked',
    'contract_ended',
    'not_found',
    'credential_cloned',
    'idempotency_mismatch',
    'license_lease_unavailable',
  ],
});

const LeaseState = z.enum(['valid', 'grace', 'expired', 'revoked']);

export const LeaseRecord = z
  .strictObject({
    lease_id: z.string(),
    deployment_id: z.string(),
    customer_id: z.string(),
    contract_id: z.string(),
    state: LeaseState,
    entitlements: z.array(z.string()),
    issued_by: z.string(),
    issued_by_name: actorName,
    device_id: z.string().nullable(),
    lineage_id: z
      .string()
      .describe('First lease of the chain of renewals that this lease belongs to.'),
    previous_lease_id: z.string().nullable(),
    renewal_id: z.string().nullable(),
    public_key_id: z.string(),
    issued_at: time,
    expires_at: time,
    grace_ends_at: time,
    revoked_at: time.nullable(),
    revoked_by: z.string().nullable(),
    revoked_by_name: actorName,
    revoked_reason: z.string().nullable(),
  })
  .openapi('LeaseRecord');

export type LeaseRecord = z.infer<typeof LeaseRecord>;

export const listLeases = defineRoute({
  method: 'get',
  path: '/identity/leases',
  operationId: 'listLeases',
  narrowable: true,
  summary: 'List issued leases, newest first',
  tags: ['Leases'],
  security: administrator('license'),
  request: {
    query: z.strictObject({
      ...pageQuery,
      deployment_id: id('acme-tokyo').optional(),
      state: LeaseState.optional(),
      lineage_id: id('0198c0de-0000-7000-8000-00000000aaaa')
        .optional()
        .describe('Only leases in the chain of renewals that starts with this lease.'),
      previous_lease_id: id('0198c0de-0000-7000-8000-00000000aaaa')
        .optional()
        .describe('Only leases that renew this one.'),
    }),
  },
  responses: { 200: jsonResponse('A page of leases.', page(LeaseRecord)) },
  errors: ['not_found'],
});

const leasePath = z.strictObject({ lease_id: id('0198c0de-0000-7000-8000-00000000aaaa') });
export const installationPath = z.strictObject({ deployment_id: id('acme-tokyo') });

export const getLease = defineRoute({
  method: 'get',
  path: '/identity/leases/{lease_id}',
  operationId: 'getLease',
  narrowable: true,
  summary: 'Show an issued lease',
  tags: ['Leases'],
  security: administrator('license'),
  request: { params: leasePath },
  responses: { 200: jsonResponse('The lease.', LeaseRecord) },
  errors: ['not_found'],
});

const RevokeRequest = z
  .strictObject({
    reason: text(200).openapi({ example: 'contract cancelled' }),
    confirm: id('acme-tokyo').describe('The id of the installation, repeated as confirmation.'),
  })
  .openapi('RevokeRequest');

export const Revoked = z
  .strictObject({
    deployment_id: z.string(),
    revoked_leases: z
      .int()
      .describe('Number of leases that were in use and can no longer be renewed.'),
    revoked_at: time,
    effective_at: time
      .nullable()
      .describe(
        'Time when the last copy stops working, which cannot be made earlier. Null if no copy works.',
      ),
    registry_enforced: z
      .boolean()
      .describe('False if a setting of the server keeps it from denying renewals.'),
  })
  .openapi('Revoked');

export type Revoked = z.infer<typeof Revoked>;

export const Revocation = z
  .strictObject({
    deployment_id: z.string(),
    working_leases: z.int().describe('Number of leases in use that are not revoked.'),
    device_ids: z.array(z.string()).describe('Devices that hold a lease in use.'),
    effective_at: time
      .nullable()
      .describe(
        'Time when the last copy would stop working, which cannot be made earlier. Null if no copy works.',
      ),
    registry_enforced: z
      .boolean()
      .describe('False if a setting of the server would keep it from denying renewals.'),
  })
  .openapi('Revocation');

export type Revocation = z.infer<typeof Revocation>;

const previewParts = {
  security: administrator('license'),
  responses: { 200: jsonResponse('The effects of a revocation.', Revocation) },
  errors: ['not_found'],
} as const;

export const previewLeaseRevocation = defineRoute({
  ...previewParts,
  method: 'get',
  path: '/identity/leases/{lease_id}/revocation',
  operationId: 'previewLeaseRevocation',
  narrowable: true,
  summary: 'Show the effects of revoking a lease',
  tags: ['Leases'],
  request: { params: leasePath },
});

export const previewInstallationRevocation = defineRoute({
  ...previewParts,
  method: 'get',
  path: '/identity/deployments/{deployment_id}/revocation',
  operationId: 'previewDeploymentRevocation',
  narrowable: true,
  summary: 'Show the effects of revoking an installation',
  tags: ['Leases'],
  request: { params: installationPath },
});

const stepUp = z.object(
  stepUpHeader('Token of a step-up for `identity.license.revoke` and this lease or installation.'),
);

const revokeParts = {
  tags: ['Leases'],
  security: administrator('license'),
  responses: { 200: jsonResponse('The revocation, made now or earlier.', Revoked) },
  errors: ['not_found', 'step_up_required', 'confirmation_mismatch'],
} as const;

const revokeBody = jsonBody(RevokeRequest, {
  administrator: { reason: 'contract cancelled', confirm: 'acme-tokyo' },
});

export const revokeLease = defineRoute({
  method: 'post',
  path: '/identity/leases/{lease_id}/revoke',
  operationId: 'revokeLease',
  narrowable: true,
  summary: 'Revoke a lease and all other leases of its machine',
  ...revokeParts,
  tags: [...revokeParts.tags],
  request: { params: leasePath, headers: stepUp, body: revokeBody },
});

export const revokeInstallation = defineRoute({
  method: 'post',
  path: '/identity/deployments/{deployment_id}/revoke',
  operationId: 'revokeDeployment',
  narrowable: true,
  summary: 'Revoke an installation and all its leases',
  ...revokeParts,
  tags: [...revokeParts.tags],
  request: { params: installationPath, headers: stepUp, body: revokeBody },
});
