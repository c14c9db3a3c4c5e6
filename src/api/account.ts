import { z } from '@hono/zod-openapi';
import { ANY_ADMINISTRATOR } from './administrators.ts';
import { defineRoute, id, jsonBody, jsonResponse, page, pageQuery, text, time } from './http.ts';

export const EXAMPLE_BROWSER_SESSION_ID = '0198c0de-0000-7000-8000-00000000cccc';
export const EXAMPLE_PASSKEY_ID = '0198c0de-0000-7000-8000-00000000dddd';

export const getAccount = defineRoute({
  method: 'get',
  path: '/identity/account',
  operationId: 'getAccount',
  summary: 'Show the account of the caller and its login methods',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  responses: {
    200: jsonResponse(
      'The administrator.',
      z
        .strictObject({
          administrator_id: z.string(),
          name: z.string(),
          created_at: time,
          recovery_codes: z.int().describe('Number of unused recovery codes.'),
          passkeys: z.int(),
        })
        .openapi('Account'),
    ),
  },
});

export const Session = z
  .strictObject({
    session_id: z.string(),
    administrator_id: z.string(),
    administrator: z.string().describe('Name of the owner.'),
    signed_in_with: z.enum(['password', 'passkey']),
    user_agent: z.string().describe('User agent that the browser sends.'),
    address: z.string().nullable().describe('Address of the browser; null if it is unknown.'),
    created_at: time,
    seen_at: time.describe('Time of the last request, to the minute.'),
    expires_at: time.describe('Time when the session ends if it is not used again.'),
    current: z.boolean().describe('Whether this is the session of the request.'),
  })
  .openapi('Session');

export type Session = z.infer<typeof Session>;

export const listSessions = defineRoute({
  method: 'get',
  path: '/identity/sessions',
  operationId: 'listSessions',
  summary: 'List the login sessions of browsers, oldest first',
  description:
    'Returns the sessions of all administrators with the scope `admin`, else those of the caller.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    query: z.strictObject({
      ...pageQuery,
      administrator_id: id('ada').optional().describe('Only sessions of this administrator.'),
    }),
  },
  responses: { 200: jsonResponse('A page of login sessions.', page(Session)) },
});

export const endSession = defineRoute({
  method: 'delete',
  path: '/identity/sessions/{session_id}',
  operationId: 'endSession',
  summary: 'End a login session',
  description: 'With the scope `admin`, ends any session, else only sessions of the caller.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { params: z.strictObject({ session_id: id(EXAMPLE_BROWSER_SESSION_ID) }) },
  responses: { 200: jsonResponse('The ended session.', Session) },
  errors: ['not_found'],
});

export const endSessions = defineRoute({
  method: 'delete',
  path: '/identity/sessions',
  operationId: 'endSessions',
  summary: 'End all login sessions of the caller',
  description: 'This includes the session of the request. Tokens remain valid.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  responses: {
    200: jsonResponse(
      'Number of ended sessions.',
      z.strictObject({ ended: z.int() }).openapi('EndedSessions'),
    ),
  },
});

export const Passkey = z
  .strictObject({
    passkey_id: z.string(),
    administrator_id: z.string(),
    site: z.string().describe('The host that the passkey works for.'),
    name: z.string(),
    created_at: time,
    last_used_at: time.nullable(),
  })
  .openapi('Passkey');

export type Passkey = z.infer<typeof Passkey>;

export const listPasskeys = defineRoute({
  method: 'get',
  path: '/identity/passkeys',
  operationId: 'listPasskeys',
  summary: 'List the passkeys of the caller, oldest first',
  description: 'Passkeys are added in a browser, on the page /console/account.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: jsonResponse('A page of passkeys.', page(Passkey)) },
});

export const renamePasskey = defineRoute({
  method: 'patch',
  path: '/identity/passkeys/{passkey_id}',
  operationId: 'renamePasskey',
  summary: 'Rename a passkey',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    params: z.strictObject({ passkey_id: id(EXAMPLE_PASSKEY_ID) }),
    body: jsonBody(z.strictObject({ name: text(200) }).openapi('PasskeyName'), {
      administrator: { name: 'Laptop' },
    }),
  },
  responses: { 200: jsonResponse('The passkey.', Passkey) },
  errors: ['not_found'],
});

export const deletePasskey = defineRoute({
  method: 'delete',
  path: '/identity/passkeys/{passkey_id}',
  operationId: 'deletePasskey',
  summary: 'Delete a passkey permanently',
  description:
    'Requires a step-up for `identity.passkey.delete` and `passkey:` with the id of the passkey: see `POST /identity/step-ups`.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    params: z.strictObject({ passkey_id: id(EXAMPLE_PASSKEY_ID) }),
    headers: z.object({
      'service-step-up': z.string().max(100).optional().openapi({ example: 'step-up-token' }),
    }),
  },
  responses: { 200: jsonResponse('The deleted passkey.', Passkey) },
  errors: ['not_found', 'step_up_required'],
});
