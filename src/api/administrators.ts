import { z } from '@hono/zod-openapi';
import { MAX_TOKEN_DEPLOYMENTS, SCOPES } from '../base/scopes.ts';
import {
  actorName,
  administrator,
  answer,
  ANYBODY,
  defineRoute,
  id,
  json,
  page,
  pageQuery,
  searchText,
  text,
  time,
  type Security,
} from './http.ts';

/** Whatever scopes its token has. */
export const ANY_ADMINISTRATOR: Security = [{ administrator: [] }];

const MONTH_SECONDS = 30 * 86_400;

const scopes = z
  .array(z.enum(SCOPES))
  .max(SCOPES.length)
  .openapi({ description: 'No scope implies another.' });

const code = z.string().min(1).max(100).openapi({
  description: 'Of the authenticator app, or a recovery code. Each works once.',
});

/** Limits that narrow a token with the scope `license` alone. */
const narrowing = {
  deployment_ids: z.array(id('acme-tokyo')).min(1).max(MAX_TOKEN_DEPLOYMENTS).nullable().openapi({
    description: 'Only these deployments; null for all. Excludes `customer_id`.',
  }),
  customer_id: id('acme').nullable().openapi({
    description: 'Only the deployments of this customer; null for all.',
  }),
  max_ttl_seconds: z.int().min(1).nullable().openapi({
    description: 'Longest TTL of leases issued with the token; null for the maximum of the server.',
    example: 86_400,
  }),
};

const Login = z
  .strictObject({
    administrator: z.string().min(1).max(100).openapi({ description: 'Name.' }),
    password: z.string().min(1).max(1000),
    code,
    label: text(200).openapi({ description: 'What the token is for.' }),
    scopes: scopes.min(1),
    expires_in_seconds: z
      .int()
      .min(60)
      .max(365 * 86_400)
      .nullable()
      .default(MONTH_SECONDS)
      .openapi({ description: 'Null for a token that does not expire.' }),
    ...z.object(narrowing).partial().shape,
  })
  .openapi('Login');

export const Token = z
  .strictObject({
    token_id: z.string(),
    administrator_id: z.string(),
    administrator: z.string().openapi({ description: 'Name of its owner.' }),
    label: z.string(),
    scopes,
    created_at: time,
    expires_at: time.nullable().openapi({ description: 'Null for a token that does not expire.' }),
    revoked_at: time.nullable(),
    ...narrowing,
  })
  .openapi('Token');

export type Token = z.infer<typeof Token>;

const NewToken = Token.extend({
  token: z.string().openapi({
    description: 'To be sent as `Authorization: Bearer …`. This is the only time it is shown.',
  }),
}).openapi('NewToken');

export const createToken = defineRoute({
  method: 'post',
  path: '/identity/tokens',
  operationId: 'createToken',
  summary: 'Log in, for a token',
  description:
    'After five failed logins with one name from one address within 15 minutes, that address may not try the name until 15 minutes after the first failure. The /64 of an IPv6 address counts as one address. After 20 failures from all addresses, only addresses from which the administrator has logged in within 90 days may try. Unknown names are treated the same.',
  tags: ['Administrators'],
  security: ANYBODY,
  request: {
    body: json(Login, {
      anybody: {
        administrator: 'ada',
        password: 'correct horse battery staple',
        code: '0000-0000-0000-0000-0000-0000-0001',
        label: 'CI',
        scopes: ['license'],
        expires_in_seconds: 86_400,
        deployment_ids: ['acme-tokyo'],
        max_ttl_seconds: 604_800,
      },
    }),
  },
  responses: { 201: answer('The token.', NewToken) },
  errors: ['not_authenticated', 'rate_limited', 'not_found'],
});

export const listTokens = defineRoute({
  method: 'get',
  path: '/identity/tokens',
  operationId: 'listTokens',
  summary: 'List tokens, the oldest first',
  description: "Everybody's for the scope `admin`, else the caller's own.",
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: answer('A page of tokens.', page(Token)) },
});

export const getOwnToken = defineRoute({
  method: 'get',
  path: '/identity/token',
  operationId: 'getOwnToken',
  narrowable: true,
  summary: 'Say whose token the request was sent with',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  responses: { 200: answer('The token.', Token) },
  errors: ['not_found'],
});

export const revokeToken = defineRoute({
  method: 'delete',
  path: '/identity/tokens/{token_id}',
  operationId: 'revokeToken',
  narrowable: true,
  summary: 'End a token',
  description: "Anybody's for the scope `admin`, else one of the caller's own.",
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { params: z.strictObject({ token_id: id('0198c0de-0000-7000-8000-00000000bbbb') }) },
  responses: { 200: answer('The token, ended now or before.', Token) },
  errors: ['not_found'],
});

const base64url = z
  .string()
  .max(10_000)
  .regex(/^[\w-]*$/, 'must be base64url');

/** `AuthenticationResponseJSON` of WebAuthn. */
export const PasskeyAssertion = z
  .strictObject({
    id: base64url,
    rawId: base64url,
    type: z.literal('public-key'),
    response: z.strictObject({
      clientDataJSON: base64url,
      authenticatorData: base64url,
      signature: base64url,
      userHandle: base64url.optional(),
    }),
    clientExtensionResults: z.record(z.string(), z.unknown()),
    authenticatorAttachment: z.enum(['platform', 'cross-platform']).optional(),
  })
  .openapi('PasskeyAssertion', {
    description:
      'What a passkey made, in a page of the console, of a challenge for the same action and target.',
  });

const StepUpRequest = z
  .strictObject({
    action: z.enum([
      'identity.license.revoke',
      'identity.passkey.add',
      'identity.passkey.delete',
      'bots.validation_report.attest',
      'identity.root.set',
      'identity.license.give',
    ]),
    target: z.string().max(150).openapi({
      description:
        'A type and an id. To revoke: `lease:` or `deployment:`. To add a passkey: `administrator:`; to delete one: `passkey:`. To attest: `validation_report:` and its `content_hash`. To set a trust root: `root:` and its fingerprint. To announce a signing key: `key:`. To give more: `contract:` or `plan:` of the change, `customer:` of a new contract, or `deployment:` to reinstate.',
    }),
    code: code.optional(),
    passkey: PasskeyAssertion.optional(),
  })
  .openapi('StepUpRequest', { description: 'With a code or a passkey.' });

export const createStepUp = defineRoute({
  method: 'post',
  path: '/identity/step-ups',
  operationId: 'createStepUp',
  narrowable: true,
  summary: 'Show a second factor, for the right to do one thing once',
  description:
    'Revoking and giving need the scope `license`, attesting needs `write`, and setting a trust root needs `admin`. After five wrong codes of an administrator from one address within 15 minutes, that address may not try again. After ten wrong codes from all addresses, only addresses from which the administrator has logged in within 90 days may try.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    body: json(StepUpRequest, {
      administrator: {
        action: 'identity.passkey.delete',
        target: 'passkey:0198c0de-0000-7000-8000-00000000dddd',
        code: '0000-0000-0000-0000-0000-0000-0002',
      },
    }),
  },
  responses: {
    201: answer(
      'The right, for five minutes.',
      z
        .strictObject({
          step_up_token: z
            .string()
            .openapi({ description: 'To be sent as `Service-Step-Up: …` with the request.' }),
          expires_at: time,
        })
        .openapi('StepUp'),
    ),
  },
  errors: ['rate_limited'],
});

export const AuditEntry = z
  .strictObject({
    seq: z.int(),
    recorded_at: z.string().openapi({ format: 'date-time' }),
    actor: z.string().openapi({ example: 'administrator:ada' }),
    actor_name: actorName,
    action: z.string(),
    target: z.string(),
    details: z.record(z.string(), z.unknown()),
    prev_hash: z
      .string()
      .openapi({ description: '`hash` of the entry before; 64 zeros at first.' }),
    hash: z.string().openapi({
      description:
        'SHA-256, in hex, of the other members of this object, but for `actor_name`, in canonical JSON (RFC 8785).',
    }),
  })
  .openapi('AuditEntry');

export type AuditEntry = z.infer<typeof AuditEntry>;

const auditHead = z.strictObject({ seq: z.int(), hash: z.string() });

const auditPage = page(AuditEntry).extend({
  head: auditHead.openapi({
    description: 'The last entry of the log at the moment of the answer.',
  }),
});

export const listAudit = defineRoute({
  method: 'get',
  path: '/identity/audit',
  operationId: 'listAudit',
  summary: 'Read the audit log, the oldest entry first',
  description:
    'What was tampered with is answered as it is: whoever reads can find it, by the hashes.',
  tags: ['Administrators'],
  security: administrator('admin'),
  request: {
    query: z.strictObject({
      after_seq: z.coerce.number().int().min(0).default(0).openapi({
        description: 'The last entry that is known: `next_cursor` of the page before.',
      }),
      limit: pageQuery.limit,
    }),
  },
  responses: { 200: answer('A page of the log.', auditPage) },
  errors: ['audit_tampered'],
});

const exactly = searchText(200).optional();

export const searchAudit = defineRoute({
  method: 'get',
  path: '/identity/audit/search',
  operationId: 'searchAudit',
  summary: 'Search the audit log, the newest entry first',
  description: 'All that is named must be so. What was tampered with is answered as it is.',
  tags: ['Administrators'],
  security: administrator('admin'),
  request: {
    query: z.strictObject({
      actor: exactly.openapi({ example: 'administrator:ada' }),
      action: exactly.openapi({ example: 'admin.identity.license.revoke' }),
      target: exactly.openapi({ example: 'deployment:acme-tokyo' }),
      from: time.optional(),
      to: time.optional().openapi({ description: 'Not itself included.' }),
      before_seq: z.coerce.number().int().min(1).optional().openapi({
        description: '`next_cursor` of the page before, with the same filter.',
        example: 1000,
      }),
      limit: pageQuery.limit,
    }),
  },
  responses: { 200: answer('A page of what was found.', auditPage) },
  errors: ['audit_tampered'],
});

const AuditVerdict = z
  .strictObject({
    verified: z.int().openapi({ description: 'So many entries are as they were written.' }),
    head: auditHead.openapi({ description: 'The last of them: to be noted out of reach.' }),
    fault: z
      .strictObject({
        seq: z.int(),
        fault: z.enum(['missing', 'altered', 'not_linked', 'beyond_head']),
      })
      .nullable()
      .openapi({ description: 'What is wrong with the next.' }),
  })
  .openapi('AuditVerdict');

export const verifyAudit = defineRoute({
  method: 'get',
  path: '/identity/audit/verification',
  operationId: 'verifyAudit',
  summary: 'Check the hash chain of the whole audit log',
  description:
    'It is the server that checks here; `service-local identity audit verify` does it without trusting the server.',
  tags: ['Administrators'],
  security: administrator('admin'),
  responses: { 200: answer('What came of it.', AuditVerdict) },
  errors: ['audit_tampered'],
});
