import { z } from '@hono/zod-openapi';
import {
  administrator,
  defineRoute,
  jsonResponse,
  page,
  pageQuery,
  searchText,
  time,
} from './http.ts';
import { installationPath } from './leases.ts';

const LicenseState = z.enum(['valid', 'grace', 'expired', 'revoked', 'none']);

export const License = z
  .strictObject({
    deployment_id: z.string(),
    name: z.string(),
    customer_id: z.string(),
    customer: z.string().describe('Name of the customer.'),
    contract_id: z.string(),
    contract_ends_at: time,
    state: LicenseState.describe(
      '`revoked` for a revoked installation, else the state of the newest lease; `none` without a lease.',
    ),
    silent: z
      .boolean()
      .describe('Whether a device has not renewed for more than half of the time it had to do so.'),
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
      .describe('The newest lease; null without a lease.'),
  })
  .openapi('License', { description: 'An installation with its newest lease.' });

export type License = z.infer<typeof License>;

export const listLicenses = defineRoute({
  method: 'get',
  path: '/identity/licenses',
  operationId: 'listLicenses',
  narrowable: true,
  summary: 'List the installations, each with its newest lease',
  tags: ['Leases'],
  security: administrator('license'),
  request: {
    query: z.strictObject({
      ...pageQuery,
      state: LicenseState.optional(),
      silent: z
        .enum(['true', 'false'])
        .optional()
        .describe('`true` returns only installations with a device whose renewal is overdue.'),
      search: searchText(200)
        .optional()
        .describe(
          'Part of the id or name of an installation or its customer, or the id of a lease or device.',
        ),
    }),
  },
  responses: { 200: jsonResponse('A page of installations, by id.', page(License)) },
});

export const getLicense = defineRoute({
  method: 'get',
  path: '/identity/licenses/{deployment_id}',
  operationId: 'getLicense',
  narrowable: true,
  summary: 'Show an installation with its newest lease',
  tags: ['Leases'],
  security: administrator('license'),
  request: { params: installationPath },
  responses: { 200: jsonResponse('The installation.', License) },
  errors: ['not_found'],
});
