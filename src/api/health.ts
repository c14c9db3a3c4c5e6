import { z } from '@hono/zod-openapi';
import { administrator, ANYBODY, answer, defineRoute } from './http.ts';

const Health = z.strictObject({ status: z.literal('ok') }).openapi('Health');

export const getHealth = defineRoute({
  method: 'get',
  path: '/healthz',
  operationId: 'getHealth',
  summary: 'Whether the process answers',
  tags: ['Server'],
  security: ANYBODY,
  responses: { 200: answer('It does.', Health) },
});

const Part = z.strictObject({
  part: z.enum(['storage', 'signing_key', 'trading', 'trust_root']),
  detail: z.string(),
  reason: z.string().optional().openapi({ description: 'The log of the server has more.' }),
});

const Readiness = z
  .strictObject({
    status: z.enum(['ready', 'degraded', 'unavailable']),
    missing: z.array(Part),
    warnings: z.array(Part).optional().openapi({
      description: 'What will be missing, such as a trust root that expires within 60 days.',
    }),
  })
  .openapi('Readiness');

/**
 * Without a signing key it answers 200: all but issuing works, and whoever took the server out of
 * rotation for it would take revocation and the public keys away, too.
 */
export const getReadiness = defineRoute({
  method: 'get',
  path: '/readyz',
  operationId: 'getReadiness',
  summary: 'What the server lacks to do its work',
  description:
    'The server is `degraded` without a signing key, when everything but issuing leases works, and while nothing trades with its database because it may be a copy: see `service-local server adopt`. With an expired trust root or keyset, machines keep their trusted keys and accept no new ones.',
  tags: ['Server'],
  security: ANYBODY,
  responses: {
    200: answer('Ready; or degraded, and everything but what is missing works.', Readiness),
    503: answer('Nothing works that needs the database.', Readiness),
  },
});

export const getMetrics = defineRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'What is counted and measured, for Prometheus',
  tags: ['Server'],
  security: administrator('read'),
  responses: {
    200: {
      description: 'In the text format of Prometheus.',
      content: { 'text/plain': { schema: z.string() } },
    },
  },
});

export const getOpenApi = defineRoute({
  method: 'get',
  path: '/openapi.json',
  operationId: 'getOpenApi',
  summary: 'This document',
  tags: ['Server'],
  security: ANYBODY,
  responses: { 200: answer('OpenAPI 3.1.', z.looseObject({ openapi: z.string() })) },
});
