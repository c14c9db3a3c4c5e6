import { z } from '@hono/zod-openapi';
import { ANY_ADMINISTRATOR } from './administrators.ts';
import { administrator, defineRoute, jsonResponse, PUBLIC, time } from './http.ts';

const Health = z.strictObject({ status: z.literal('ok') }).openapi('Health');

export const getHealth = defineRoute({
  method: 'get',
  path: '/healthz',
  operationId: 'getHealth',
  summary: 'Check that the process responds',
  tags: ['Server'],
  security: PUBLIC,
  responses: { 200: jsonResponse('The process responds.', Health) },
});

const Part = z.strictObject({
  part: z.enum(['storage', 'signing_key', 'trading', 'trust_root']),
  detail: z.string(),
  reason: z.string().optional().describe('The log of the server has details.'),
});

const Readiness = z
  .strictObject({
    status: z.enum(['ready', 'degraded', 'unavailable']),
    missing: z.array(Part),
    warnings: z
      .array(Part)
      .optional()
      .describe(
        'Parts that will be missing soon, such as a trust root that expires within 60 days.',
      ),
  })
  .openapi('Readiness');

/**
 * Returns 200 without a signing key. A load balancer that removed the server because of the missing
 * key would also stop revocation and the publication of keys.
 */
export const getReadiness = defineRoute({
  method: 'get',
  path: '/readyz',
  operationId: 'getReadiness',
  summary: 'Show what the server lacks to do its work',
  description:
    'The server is `degraded` without a signing key, because it then issues no leases, and while trading is blocked because its database may be a copy: see `service-local server adopt`. With an expired trust root or keyset, machines keep their trusted keys and accept no new ones.',
  tags: ['Server'],
  security: PUBLIC,
  responses: {
    200: jsonResponse(
      'The server is ready, or degraded: everything works except what is missing.',
      Readiness,
    ),
    503: jsonResponse('Nothing that needs the database works.', Readiness),
  },
});

export const getMetrics = defineRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'Read metrics for Prometheus',
  tags: ['Server'],
  security: administrator('read'),
  responses: {
    200: {
      description: 'Metrics in the Prometheus text format.',
      content: { 'text/plain': { schema: z.string() } },
    },
  },
});

const Sizes = z
  .strictObject({
    database_bytes: z.int(),
    measured_at: time
      .nullable()
      .describe('Time of the last hourly measurement; null before the first one.'),
    tables: z
      .array(
        z.strictObject({
          table: z.string(),
          bytes: z.int().describe('Size of the table with its indexes.'),
          bytes_per_day: z
            .number()
            .nullable()
            .describe('Average growth of the last 30 days; null during the first day.'),
        }),
      )
      .describe('Tables of at least 1 MiB, largest first.'),
    events: z.strictObject({
      database: z.int(),
      archived: z.int(),
    }),
  })
  .openapi('Sizes');

export const getSizes = defineRoute({
  method: 'get',
  path: '/sizes',
  operationId: 'getSizes',
  summary: 'Show the size and the growth of the database',
  tags: ['Server'],
  security: ANY_ADMINISTRATOR,
  responses: { 200: jsonResponse('Sizes and growth.', Sizes) },
});

export const getOpenApi = defineRoute({
  method: 'get',
  path: '/openapi.json',
  operationId: 'getOpenApi',
  summary: 'Read this OpenAPI document',
  tags: ['Server'],
  security: PUBLIC,
  responses: { 200: jsonResponse('OpenAPI 3.1.', z.looseObject({ openapi: z.string() })) },
});
