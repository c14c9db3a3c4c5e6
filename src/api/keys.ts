import { z } from '@hono/zod-openapi';
import { administrator, answer, ANYBODY, defineRoute, id, page, time } from './http.ts';

const EXAMPLE_KEY = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k';

const Jwk = z
  .strictObject({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z.string(),
    kid: z.string(),
    status: z.enum(['active', 'retiring']).optional(),
  })
  .openapi('PublicKey', { description: 'A public key as a JWK (RFC 8037).' });

export const Keyset = z.strictObject({ keys: z.array(Jwk) }).openapi('PublicKeyset', {
  description: 'The keys that verify leases, as a JWK set (RFC 7517).',
});

export type Keyset = z.infer<typeof Keyset>;

export const getKeyset = defineRoute({
  method: 'get',
  path: '/.well-known/license-keys.json',
  operationId: 'getKeyset',
  summary: 'All keys under which a lease can be good',
  tags: ['Keys'],
  security: ANYBODY,
  responses: {
    200: answer('The keys, with an ETag.', Keyset),
    304: { description: 'As they were.' },
  },
});

export const getPublicKey = defineRoute({
  method: 'get',
  path: '/auth/license/public-key',
  operationId: 'getPublicKey',
  summary: 'The key that signs leases, or an older one that is still good',
  tags: ['Keys'],
  security: ANYBODY,
  request: { query: z.strictObject({ public_key_id: id(EXAMPLE_KEY).optional() }) },
  responses: {
    200: answer(
      'The key.',
      z
        .strictObject({
          public_key_id: z.string(),
          status: z.enum(['active', 'retiring']),
          jwk: Jwk,
          pem: z.string().openapi({ description: 'The same as SubjectPublicKeyInfo in PEM.' }),
        })
        .openapi('PublishedKey'),
    ),
    304: { description: 'As it was.' },
  },
  errors: ['not_found', 'license_lease_unavailable'],
});

export const KeyState = z
  .strictObject({
    public_key_id: z.string(),
    status: z.enum(['active', 'retiring', 'retired']),
    x: z.string(),
    activated_at: time,
    retiring_at: time.nullable(),
    retired_at: time.nullable(),
    outstanding_leases: z.int(),
    retirable_at: time.nullable().openapi({
      description: 'From when on it can be retired; null while it signs, and once it is retired.',
    }),
  })
  .openapi('KeyState');

export type KeyState = z.infer<typeof KeyState>;

export const listKeys = defineRoute({
  method: 'get',
  path: '/identity/keys',
  operationId: 'listKeys',
  summary: 'List the signing keys and how far their rotation is',
  tags: ['Keys'],
  security: administrator('admin'),
  responses: { 200: answer('The keys, the newest first.', page(KeyState)) },
});

export const retireKey = defineRoute({
  method: 'post',
  path: '/identity/keys/{public_key_id}/retire',
  operationId: 'retireKey',
  summary: 'Take a key out of the published ones for good',
  description: 'Refused while a lease under it could still be in its grace period.',
  tags: ['Keys'],
  security: administrator('admin'),
  request: { params: z.strictObject({ public_key_id: id(EXAMPLE_KEY) }) },
  responses: { 200: answer('The key, retired.', KeyState) },
  errors: ['not_found', 'key_in_use'],
});
