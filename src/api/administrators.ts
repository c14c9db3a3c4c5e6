import { STEP_UP_ACTIONS } from '../base/step-up-actions.ts';
import { z } from '@hono/zod-openapi';
import { MAX_TOKEN_INSTALLATIONS, SCOPES } from '../base/scopes.ts';
import { TOKEN_MAX_SECONDS, TOKEN_MIN_SECONDS } from '../base/token-lifetime.ts';
import {
  actorName,
  administrator,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  page,
  pageQuery,
  PUBLIC,
  searchText,
  text,
  time,
  type Security,
} from './http.ts';
import { chainHead, chainPage, chainQuery } from './hash-chain.ts';

/** Any administrator, whatever scopes the token has. */
export const ANY_ADMINISTRATOR: Security = [{ administrator: [] }];

const MONTH_SECONDS = 30 * 86_400;

const scopes = z.array(z.enum(SCOPES)).max(SCOPES.length).describe('No scope implies another.');

const code = z
  .string()
  .min(1)
  .max(100)
  .describe('A code of the authenticator app, or a recovery code. Each works once.');

/** Restrictions of a token that has only the scope `license`. */
const narrowing = {
  deployment_ids: z
    .array(id('acme-tokyo'))
    .min(1)
    .max(MAX_TOKEN_INSTALLATIONS)
    .nullable()
    .describe('Only these installations; null for all. Excludes `customer_id`.'),
  customer_id: id('acme')
    .nullable()
    .describe('Only the installations of this customer; null for all.'),
  max_ttl_seconds: z.int().min(1).nullable().openapi({
    description: 'Maximum TTL of leases issued with the token; null for the maximum of the server.',
    example: 86_400,
  }),
};

const Login = z
  .strictObject({
    administrator: z.string().min(1).max(100).describe('Name of the administrator.'),
    password: z.string().min(1).max(1000),
    code,
    label: text(200).describe('Purpose of the token.'),
    scopes: scopes.min(1),
    expires_in_seconds: z
      .int()
      .min(TOKEN_MIN_SECONDS)
      .max(TOKEN_MAX_SECONDS)
      .nullable()
      .default(MONTH_SECONDS)
      .describe('Null for a token that does not expire.'),
    ...z.object(narrowing).partial().shape,
  })
  .openapi('Login');

export const Token = z
  .strictObject({
    token_id: z.string(),
    administrator_id: z.string(),
    administrator: z.string().describe('Name of the owner.'),
    label: z.string(),
    scopes,
    created_at: time,
    expires_at: time.nullable().describe('Null for a token that does not expire.'),
    revoked_at: time.nullable(),
    ...narrowing,
  })
  .openapi('Token');

export type Token = z.infer<typeof Token>;

const NewToken = z
  .strictObject({
    ...Token.shape,
    token: z
      .string()
      .describe('Send it as `Authorization: Bearer …`. It is shown only in this response.'),
  })
  .openapi('NewToken');

export const createToken = defineRoute({
  method: 'post',
  path: '/identity/tokens',
  operationId: 'createToken',
  summary: 'Log in and create a token',
  description:
    'After five failed logins with one name from one address within 15 minutes, that address may not try the name until 15 minutes after the first failure. The /64 of an IPv6 address counts as one address. After 20 failures from all addresses, only addresses from which the administrator has logged in within 90 days may try. Unknown names are treated the same.',
  tags: ['Administrators'],
  security: PUBLIC,
  request: {
    body: jsonBody(Login, {
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
  responses: { 201: jsonResponse('The token.', NewToken) },
  errors: ['not_authenticated', 'rate_limited', 'not_found'],
});

export const listTokens = defineRoute({
  method: 'get',
  path: '/identity/tokens',
  operationId: 'listTokens',
  summary: 'List tokens, oldest first',
  description:
    'Returns the tokens of all administrators with the scope `admin`, else those of the caller.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of tokens.', page(Token)) },
});

export const getOwnToken = defineRoute({
  method: 'get',
  path: '/identity/token',
  operationId: 'getOwnToken',
  narrowable: true,
  summary: 'Show the token of the request',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  responses: { 200: jsonResponse('The token.', Token) },
  errors: ['not_found'],
});

export const revokeToken = defineRoute({
  method: 'delete',
  path: '/identity/tokens/{token_id}',
  operationId: 'revokeToken',
  narrowable: true,
  summary: 'Revoke a token',
  description: 'With the scope `admin`, revokes any token, else only tokens of the caller.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { params: z.strictObject({ token_id: id('0198c0de-0000-7000-8000-00000000bbbb') }) },
  responses: { 200: jsonResponse('The token, revoked now or earlier.', Token) },
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
      'Signature of a passkey over a challenge for the same action and target, made in a page of the console.',
  });

const StepUpRequest = z
  .strictObject({
    action: z.enum(STEP_UP_ACTIONS),
    target: z
      .string()
      .max(150)
      .describe(
        'Type and id of the target. To revoke: `lease:` or `deployment:`. To add a passkey: `administrator:`; to delete one: `passkey:`. To attest: `validation_report:` and its `content_hash`. To set a trust root: `root:` and its fingerprint. To announce a signing key: `key:`. To grant more: `contract:` or `plan:` for a change, `customer:` for a new contract, or `deployment:` to reinstate.',
      ),
    code: code.optional(),
    passkey: PasskeyAssertion.optional(),
  })
  .openapi('StepUpRequest', { description: 'Contains either a code or a passkey.' });

export const createStepUp = defineRoute({
  method: 'post',
  path: '/identity/step-ups',
  operationId: 'createStepUp',
  narrowable: true,
  summary: 'Confirm an action with a second factor',
  description:
    'Returns a token that authorizes one action on one target once. Revoking and granting need the scope `license`, attesting needs `write`, and setting a trust root needs `admin`. After five wrong codes of an administrator from one address within 15 minutes, that address may not try again. After ten wrong codes from all addresses, only addresses from which the administrator has logged in within 90 days may try.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    body: jsonBody(StepUpRequest, {
      administrator: {
        action: 'identity.passkey.delete',
        target: 'passkey:0198c0de-0000-7000-8000-00000000dddd',
        code: '0000-0000-0000-0000-0000-0000-0002',
      },
    }),
  },
  responses: {
    201: jsonResponse(
      'The step-up token, valid for five minutes.',
      z
        .strictObject({
          step_up_token: z.string().describe('Send it as `Service-Step-Up: …` with the request.'),
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
    prev_hash: z.string().describe('`hash` of the previous entry; 64 zeros in the first entry.'),
    hash: z
      .string()
      .describe(
        'SHA-256, in hex, of the other fields except `actor_name`, in canonical JSON (RFC 8785).',
      ),
  })
  .openapi('AuditEntry');

export type AuditEntry = z.infer<typeof AuditEntry>;

const auditPage = chainPage(AuditEntry);

export const listAudit = defineRoute({
  method: 'get',
  path: '/identity/audit',
  operationId: 'listAudit',
  summary: 'Read the audit log, oldest entry first',
  description:
    'Entries that were tampered with are returned unchanged, so that the reader can detect them by their hashes.',
  tags: ['Administrators'],
  security: administrator('admin'),
  request: {
    query: z.strictObject(chainQuery),
  },
  responses: { 200: jsonResponse('A page of the log.', auditPage) },
  errors: ['audit_tampered'],
});

const exactly = searchText(200).optional();

export const searchAudit = defineRoute({
  method: 'get',
  path: '/identity/audit/search',
  operationId: 'searchAudit',
  summary: 'Search the audit log, newest entry first',
  description:
    'Returns entries that match all given filters. Entries that were tampered with are returned unchanged.',
  tags: ['Administrators'],
  security: administrator('admin'),
  request: {
    query: z.strictObject({
      actor: exactly.openapi({ example: 'administrator:ada' }),
      action: exactly.openapi({ example: 'admin.identity.license.revoke' }),
      target: exactly.openapi({ example: 'deployment:acme-tokyo' }),
      from: time.optional(),
      to: time.optional().describe('Only entries before this time.'),
      before_seq: z.coerce.number().int().min(1).optional().openapi({
        description: '`next_cursor` of the previous page, which must have had the same filter.',
        example: 1000,
      }),
      limit: pageQuery.limit,
    }),
  },
  responses: { 200: jsonResponse('A page of matching entries.', auditPage) },
  errors: ['audit_tampered'],
});

const AuditVerdict = z
  .strictObject({
    verified: z.int().describe('Number of intact entries.'),
    head: chainHead.describe(
      'The last intact entry. Store a copy where the server cannot change it.',
    ),
    fault: z
      .strictObject({
        seq: z.int(),
        fault: z.enum(['missing', 'altered', 'not_linked', 'beyond_head']),
      })
      .nullable()
      .describe('The first fault after the intact entries; null if there are no faults.'),
  })
  .openapi('AuditVerdict');

export const verifyAudit = defineRoute({
  method: 'get',
  path: '/identity/audit/verification',
  operationId: 'verifyAudit',
  summary: 'Check the hash chain of the whole audit log',
  description:
    'The server itself makes this check; `service-local identity audit verify` checks the log without trusting the server.',
  tags: ['Administrators'],
  security: administrator('admin'),
  responses: { 200: jsonResponse('The result of the check.', AuditVerdict) },
  errors: ['audit_tampered'],
});
