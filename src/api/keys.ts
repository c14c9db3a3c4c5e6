import { z } from '@hono/zod-openapi';
import {
  administrator,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  page,
  PUBLIC,
  stepUpHeader,
  time,
} from './http.ts';
import { EXAMPLE_NEXT_KEY, EXAMPLE_TRUST } from './root-example.ts';

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

const SignedDocument = z
  .strictObject({
    payloadType: z.string(),
    payload: z.base64(),
    signatures: z.array(z.strictObject({ keyid: z.string(), sig: z.base64() })),
  })
  .openapi('SignedDocument', { description: 'A DSSE envelope with Ed25519 signatures.' });

const Roots = z
  .array(SignedDocument)
  .describe(
    'The chain of roots of the issuer, oldest first. Absent if the issuer has no trust root.',
  );

export const Keyset = z
  .strictObject({
    keys: z.array(Jwk),
    roots: Roots.optional(),
    keyset: SignedDocument.optional().describe(
      'The keys, signed by the root; verifiers that know a root trust only these.',
    ),
  })
  .openapi('PublicKeyset', {
    description:
      'The keys that verify leases as a JWK set (RFC 7517), with the signatures of the trust root.',
  });

export type Keyset = z.infer<typeof Keyset>;

export const getKeyset = defineRoute({
  method: 'get',
  path: '/.well-known/license-keys.json',
  operationId: 'getKeyset',
  summary: 'List all keys that verify valid leases',
  tags: ['Keys'],
  security: PUBLIC,
  responses: {
    200: jsonResponse('The keys, with an ETag.', Keyset),
    304: { description: 'The keys have not changed.' },
  },
});

export const getPublicKey = defineRoute({
  method: 'get',
  path: '/auth/license/public-key',
  operationId: 'getPublicKey',
  summary: 'Show the key that signs leases, or an older key that still verifies leases',
  tags: ['Keys'],
  security: PUBLIC,
  request: { query: z.strictObject({ public_key_id: id(EXAMPLE_KEY).optional() }) },
  responses: {
    200: jsonResponse(
      'The key.',
      z
        .strictObject({
          public_key_id: z.string(),
          status: z.enum(['active', 'retiring']),
          jwk: Jwk,
          pem: z.string().describe('The key as SubjectPublicKeyInfo in PEM.'),
        })
        .openapi('PublishedKey'),
    ),
    304: { description: 'The key has not changed.' },
  },
  errors: ['not_found', 'license_lease_unavailable'],
});

export const KeyState = z
  .strictObject({
    public_key_id: z.string(),
    status: z
      .enum(['pending', 'active', 'retiring', 'retired'])
      .describe('A pending key signs once the signed keyset contains it.'),
    x: z.string(),
    activated_at: time.describe(
      'For a pending key, the time when a server was first started with it.',
    ),
    in_keyset: z
      .boolean()
      .nullable()
      .describe(
        'Whether the signed keyset contains the key; null if the issuer has no trust root.',
      ),
    retiring_at: time.nullable(),
    retired_at: time.nullable(),
    outstanding_leases: z.int(),
    retirable_at: time
      .nullable()
      .describe(
        'Earliest time when the key can be retired; null for the signing key and for retired keys.',
      ),
  })
  .openapi('KeyState');

export type KeyState = z.infer<typeof KeyState>;

export const listKeys = defineRoute({
  method: 'get',
  path: '/identity/keys',
  operationId: 'listKeys',
  summary: 'List the signing keys and the state of their rotation',
  tags: ['Keys'],
  security: administrator('admin'),
  responses: { 200: jsonResponse('The keys, newest first.', page(KeyState)) },
});

export const retireKey = defineRoute({
  method: 'post',
  path: '/identity/keys/{public_key_id}/retire',
  operationId: 'retireKey',
  summary: 'Remove a key permanently from the published keys',
  description: 'Fails while a lease signed with the key may still be in its grace period.',
  tags: ['Keys'],
  security: administrator('admin'),
  request: { params: z.strictObject({ public_key_id: id(EXAMPLE_KEY) }) },
  responses: { 200: jsonResponse('The key, retired.', KeyState) },
  errors: ['not_found', 'key_in_use'],
});

const StoredTrust = z
  .strictObject({
    root_fingerprint: z.string(),
    root_version: z.int(),
    root_expires_at: time,
    keyset_version: z.int(),
    keyset_expires_at: time,
    key_ids: z.array(z.string()),
    retired: z.array(z.string()),
    activated: z
      .string()
      .nullable()
      .describe('The key that signs from now on, if it was waiting for this keyset.'),
  })
  .openapi('StoredTrust');

export type StoredTrust = z.infer<typeof StoredTrust>;

export const storeTrust = defineRoute({
  method: 'put',
  path: '/identity/root',
  operationId: 'storeTrust',
  summary: 'Publish trust roots and a signed keyset',
  description:
    'Version numbers must increase, and the keyset must contain the signing key and all keys of leases still in use. A first root, and a root that replaces another, require a step-up for `identity.root.set` and `root:FINGERPRINT`.',
  tags: ['Keys'],
  security: administrator('admin'),
  request: {
    headers: z.object(stepUpHeader('Token of a step-up for `identity.root.set` and this root.')),
    body: jsonBody(
      z
        .strictObject({
          roots: Roots.min(1).max(64),
          keyset: SignedDocument,
          replaces: z
            .string()
            .max(64)
            .optional()
            .describe('Fingerprint of the stored root that this root replaces.'),
        })
        .openapi('TrustDocument'),
      { administrator: EXAMPLE_TRUST },
    ),
  },
  responses: { 200: jsonResponse('What is now published.', StoredTrust) },
  errors: ['conflict', 'step_up_required'],
});

export const announceKey = defineRoute({
  method: 'post',
  path: '/identity/keys',
  operationId: 'announceKey',
  summary: 'Endorse the next key with the signing key',
  description:
    'For an issuer without a trust root: machines that know the current key then accept the next one. Requires a step-up for `identity.root.set` and `key:ID`.',
  tags: ['Keys'],
  security: administrator('admin'),
  request: {
    headers: z.object(stepUpHeader('Token of a step-up for `identity.root.set` and this key.')),
    body: jsonBody(z.strictObject({ x: z.string().regex(/^[\w-]{43}$/) }).openapi('NextKey'), {
      administrator: { x: EXAMPLE_NEXT_KEY },
    }),
  },
  responses: {
    200: jsonResponse(
      'The endorsed key.',
      z
        .strictObject({
          public_key_id: z.string(),
          keyset_version: z.int(),
          endorsed_by: z.string(),
        })
        .openapi('AnnouncedKey'),
    ),
  },
  errors: ['conflict', 'step_up_required', 'license_lease_unavailable'],
});
