import { z } from '@hono/zod-openapi';
import { MAX_ENTITLEMENTS } from '../lease/claims.ts';
import { PAYLOAD_TYPE } from '../lease/envelope.ts';
import { OFFLINE_REQUEST_TYPE } from '../base/proof-claims.ts';
import {
  actorName,
  administrator,
  answer,
  defineRoute,
  id,
  json,
  machineHash,
  page,
  pageQuery,
  searchText,
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
      'A signed lease, the content of license_lease.json: an envelope of DSSE 1.0.2 whose payload are the claims in canonical JSON.',
  });

const IssueRequest = z
  .strictObject({
    deployment_id: id('acme-tokyo'),
    entitlements: entitlements
      .optional()
      .openapi({ description: 'At most those of plan and contract, which are the default.' }),
    ttl_seconds: z.int().min(1).optional().openapi({ example: 604_800 }),
    grace_period_seconds: z.int().min(0).optional().openapi({ example: 259_200 }),
    customer_id: id('acme').optional().openapi({
      description: 'To be sure: the customer to whom the deployment belongs.',
    }),
    issue_id: id('0198c0de-0000-7000-8000-000000000004').optional().openapi({
      description:
        'Made by whoever asks: with the same one there is no second lease, but the error `conflict` with the reason `already_issued`. It is for leases without an offline_request, which has an id of its own.',
    }),
    offline_request: z
      .string()
      .max(65_536)
      .optional()
      .openapi({
        description: `The request of a device without a network: a JWT signed with its key. The header is that of a DeviceProof, except that \`typ\` is \`${OFFLINE_REQUEST_TYPE}\`. The claims are \`iss\`, \`sub\`, \`iat\`, \`jwk\`, \`name\`, \`renewal_id\`, \`lease\` and \`machine_hash\`, the last three as in RenewRequest. The lease is for this device, which is added to the deployment if necessary. A repeated request with the same terms within 24 hours gets the same bytes while that lease lasts; with other terms, it gets a new lease.`,
      }),
  })
  .openapi('IssueRequest', { description: 'What an administrator sends.' });

const RenewRequest = z
  .strictObject({
    renewal_id: id('0198c0de-0000-7000-8000-000000000001').openapi({
      description:
        'Made by the device and kept before it asks. Asking again within 24 hours with the same one gets the same bytes.',
    }),
    lease: Envelope.optional().openapi({
      description: 'The lease that the device holds; absent when it holds none.',
    }),
    machine_hash: machineHash.optional(),
  })
  .openapi('RenewRequest', {
    description: 'What a device sends: entitlements and TTL are what the registry says.',
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
  limits: z
    .array(Limit)
    .openapi({ description: 'Where less time was given than was due, and why.' }),
  warnings: z
    .array(Warning)
    .openapi({ description: 'What somebody should look into, though the lease is good.' }),
};

export const LeaseAnswer = z
  .strictObject({ lease: Envelope, lease_id: z.string(), ...given })
  .openapi('LeaseAnswer');

export type LeaseAnswer = z.infer<typeof LeaseAnswer>;

/** Of an administrator, or of a device. */
const LeaseRequest = z.union([IssueRequest, RenewRequest]);

export type LeaseRequest = z.infer<typeof LeaseRequest>;

export const createLease = defineRoute({
  method: 'post',
  path: '/auth/license/leases',
  operationId: 'createLease',
  narrowable: true,
  summary: 'Issue a lease, or renew one',
  description:
    'An administrator states deployment, entitlements and TTL. A device states the lease it holds; the one that answers it follows from the registry, and the one it holds stays as good as it was. The signed lease is answered once: the registry keeps what it says, not its signature.',
  tags: ['Leases'],
  security: [{ administrator: ['license'] }, { device: [] }],
  request: {
    body: json(LeaseRequest, {
      administrator: {
        deployment_id: 'acme-tokyo',
        entitlements: ['live_trading'],
        ttl_seconds: 604_800,
      },
      device: { renewal_id: '0198c0de-0000-7000-8000-000000000001' },
    }),
  },
  responses: { 201: answer('The signed lease.', LeaseAnswer) },
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
  summary: 'Say what issuing a lease, or renewing one, would give',
  description:
    'Takes the request of an administrator, or that of a renewal, and makes all its checks: what is wrong, or how much less than was wished is given, is known before. Nothing is issued.',
  tags: ['Leases'],
  security: [{ administrator: ['license'] }, { device: [] }],
  request: {
    body: json(DryRunRequest, {
      administrator: { deployment_id: 'acme-tokyo', ttl_seconds: 604_800 },
      device: { renewal_id: '0198c0de-0000-7000-8000-000000000001' },
    }),
  },
  responses: { 200: answer('What it would give, had it been asked for now.', DryRun) },
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
    lineage_id: z.string().openapi({
      description: 'The first lease of the line of renewals to which it belongs.',
    }),
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
  summary: 'List the leases of the registry, the newest first',
  tags: ['Leases'],
  security: administrator('license'),
  request: {
    query: z.strictObject({
      ...pageQuery,
      deployment_id: id('acme-tokyo').optional(),
      state: LeaseState.optional(),
      lineage_id: id('0198c0de-0000-7000-8000-00000000aaaa').optional().openapi({
        description: 'Only this line of renewals, named by its first lease.',
      }),
      previous_lease_id: id('0198c0de-0000-7000-8000-00000000aaaa').optional().openapi({
        description: 'Only those that renew this one.',
      }),
    }),
  },
  responses: { 200: answer('A page of leases.', page(LeaseRecord)) },
  errors: ['not_found'],
});

const leasePath = z.strictObject({ lease_id: id('0198c0de-0000-7000-8000-00000000aaaa') });
const deploymentPath = z.strictObject({ deployment_id: id('acme-tokyo') });

export const getLease = defineRoute({
  method: 'get',
  path: '/identity/leases/{lease_id}',
  operationId: 'getLease',
  narrowable: true,
  summary: 'Show a lease of the registry',
  tags: ['Leases'],
  security: administrator('license'),
  request: { params: leasePath },
  responses: { 200: answer('The lease.', LeaseRecord) },
  errors: ['not_found'],
});

const RevokeRequest = z
  .strictObject({
    reason: text(200).openapi({ example: 'contract cancelled' }),
    confirm: id('acme-tokyo').openapi({ description: "The deployment's id, typed once more." }),
  })
  .openapi('RevokeRequest');

export const Revoked = z
  .strictObject({
    deployment_id: z.string(),
    revoked_leases: z
      .int()
      .openapi({ description: 'Leases that still worked and are now not renewed any more.' }),
    revoked_at: time,
    effective_at: time.nullable().openapi({
      description:
        'When the last copy stops working; until then nothing takes it back. Null when none works.',
    }),
    registry_enforced: z
      .boolean()
      .openapi({ description: 'False: by a setting of the server, renewal is not denied.' }),
  })
  .openapi('Revoked');

export type Revoked = z.infer<typeof Revoked>;

export const Revocation = z
  .strictObject({
    deployment_id: z.string(),
    working_leases: z
      .int()
      .openapi({ description: 'Leases that still work and are not revoked yet.' }),
    device_ids: z
      .array(z.string())
      .openapi({ description: 'The machines that have one that works.' }),
    effective_at: time.nullable().openapi({
      description:
        'When the last copy would stop working: until then nothing takes it back. Null when none works.',
    }),
    registry_enforced: z
      .boolean()
      .openapi({ description: 'False: by a setting of the server, renewal would not be denied.' }),
  })
  .openapi('Revocation');

export type Revocation = z.infer<typeof Revocation>;

const previewParts = {
  security: administrator('license'),
  responses: { 200: answer('What it would do.', Revocation) },
  errors: ['not_found'],
} as const;

export const previewLeaseRevocation = defineRoute({
  ...previewParts,
  method: 'get',
  path: '/identity/leases/{lease_id}/revocation',
  operationId: 'previewLeaseRevocation',
  narrowable: true,
  summary: 'Say whom revoking a lease would hit, and when the last copy would stop',
  tags: ['Leases'],
  request: { params: leasePath },
});

export const previewDeploymentRevocation = defineRoute({
  ...previewParts,
  method: 'get',
  path: '/identity/deployments/{deployment_id}/revocation',
  operationId: 'previewDeploymentRevocation',
  narrowable: true,
  summary: 'Say whom revoking a deployment would hit, and when the last copy would stop',
  tags: ['Leases'],
  request: { params: deploymentPath },
});

const stepUpHeader = z.object({
  'service-step-up': z.string().optional().openapi({
    description: 'Token of a step-up for `identity.license.revoke` and this very target.',
    example: 'step-up-token',
  }),
});

const revokeParts = {
  tags: ['Leases'],
  security: administrator('license'),
  responses: { 200: answer('Revoked, now or before.', Revoked) },
  errors: ['not_found', 'step_up_required', 'confirmation_mismatch'],
} as const;

const revokeBody = json(RevokeRequest, {
  administrator: { reason: 'contract cancelled', confirm: 'acme-tokyo' },
});

export const revokeLease = defineRoute({
  method: 'post',
  path: '/identity/leases/{lease_id}/revoke',
  operationId: 'revokeLease',
  narrowable: true,
  summary: 'Deny renewal of a lease, and of all that its machine has',
  ...revokeParts,
  tags: [...revokeParts.tags],
  request: { params: leasePath, headers: stepUpHeader, body: revokeBody },
});

export const revokeDeployment = defineRoute({
  method: 'post',
  path: '/identity/deployments/{deployment_id}/revoke',
  operationId: 'revokeDeployment',
  narrowable: true,
  summary: 'Deny leases to a deployment, and renewal of all that it has',
  ...revokeParts,
  tags: [...revokeParts.tags],
  request: { params: deploymentPath, headers: stepUpHeader, body: revokeBody },
});

// Deployments, each with its newest lease.

const LicenseState = z.enum(['valid', 'grace', 'expired', 'revoked', 'none']);

export const License = z
  .strictObject({
    deployment_id: z.string(),
    name: z.string(),
    customer_id: z.string(),
    customer: z.string().openapi({ description: 'Name of the customer.' }),
    contract_id: z.string(),
    contract_ends_at: time,
    state: LicenseState.openapi({
      description: 'Revoked, else what the newest lease is worth; `none` where there is none.',
    }),
    silent: z.boolean().openapi({
      description:
        'Whether a device has not renewed although half of the time that it has for it is over.',
    }),
    lease: z
      .strictObject({
        lease_id: z.string(),
        device_id: z.string().nullable(),
        public_key_id: z.string(),
        issued_at: time,
        expires_at: time,
        grace_ends_at: time,
      })
      .nullable()
      .openapi({ description: 'The newest.' }),
  })
  .openapi('License', { description: 'A deployment with its newest lease.' });

export type License = z.infer<typeof License>;

export const listLicenses = defineRoute({
  method: 'get',
  path: '/identity/licenses',
  operationId: 'listLicenses',
  narrowable: true,
  summary: 'List the deployments, each with its newest lease',
  tags: ['Leases'],
  security: administrator('license'),
  request: {
    query: z.strictObject({
      ...pageQuery,
      state: LicenseState.optional(),
      silent: z.enum(['true', 'false']).optional().openapi({
        description: '`true`: only those with a device whose renewal is overdue.',
      }),
      search: searchText(200).optional().openapi({
        description:
          'Part of the id or name of a deployment or its customer; or the id of a lease or device.',
      }),
    }),
  },
  responses: { 200: answer('A page of deployments, by id.', page(License)) },
});

export const getLicense = defineRoute({
  method: 'get',
  path: '/identity/licenses/{deployment_id}',
  operationId: 'getLicense',
  narrowable: true,
  summary: 'Show a deployment with its newest lease',
  tags: ['Leases'],
  security: administrator('license'),
  request: { params: deploymentPath },
  responses: { 200: answer('The deployment.', License) },
  errors: ['not_found'],
});
