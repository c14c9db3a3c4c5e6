import { z } from '@hono/zod-openapi';
import { ANY_ADMINISTRATOR } from './administrators.ts';
import { answer, defineRoute, id, json, page, pageQuery, text, time } from './http.ts';

export const EXAMPLE_BROWSER_SESSION_ID = '0198c0de-0000-7000-8000-00000000cccc';
export const EXAMPLE_PASSKEY_ID = '0198c0de-0000-7000-8000-00000000dddd';

export const getAccount = defineRoute({
  method: 'get',
  path: '/identity/account',
  operationId: 'getAccount',
  summary: 'Say who the caller is, and with what he can log in',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  responses: {
    200: answer(
      'The administrator.',
      z
        .strictObject({
          administrator_id: z.string(),
          name: z.string(),
          created_at: time,
          recovery_codes: z.int().openapi({ description: 'How many have not been used.' }),
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
    administrator: z.string().openapi({ description: 'Name of its owner.' }),
    signed_in_with: z.enum(['password', 'passkey']),
    user_agent: z.string().openapi({ description: 'The browser, as it calls itself.' }),
    address: z.string().nullable().openapi({ description: 'From where, if that is known.' }),
    created_at: time,
    seen_at: time.openapi({ description: 'The last use, to the minute.' }),
    expires_at: time.openapi({ description: 'When it ends if nobody uses it from now on.' }),
    current: z.boolean().openapi({ description: 'Whether the request was sent in it.' }),
  })
  .openapi('Session');

export type Session = z.infer<typeof Session>;

export const listSessions = defineRoute({
  method: 'get',
  path: '/identity/sessions',
  operationId: 'listSessions',
  summary: 'List the sessions in browsers, the oldest first',
  description: "Everybody's for the scope `admin`, else the caller's own.",
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    query: z.strictObject({
      ...pageQuery,
      administrator_id: id('ada').optional().openapi({ description: 'Only those of this one.' }),
    }),
  },
  responses: { 200: answer('A page of sessions.', page(Session)) },
});

export const endSession = defineRoute({
  method: 'delete',
  path: '/identity/sessions/{session_id}',
  operationId: 'endSession',
  summary: 'End a session',
  description: "Anybody's for the scope `admin`, else one of the caller's own.",
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { params: z.strictObject({ session_id: id(EXAMPLE_BROWSER_SESSION_ID) }) },
  responses: { 200: answer('The session, which is over.', Session) },
  errors: ['not_found'],
});

export const endSessions = defineRoute({
  method: 'delete',
  path: '/identity/sessions',
  operationId: 'endSessions',
  summary: "End all of the caller's own sessions",
  description: 'Also the one in which the request is sent. Tokens go on.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  responses: {
    200: answer(
      'How many there were.',
      z.strictObject({ ended: z.int() }).openapi('EndedSessions'),
    ),
  },
});

export const Passkey = z
  .strictObject({
    passkey_id: z.string(),
    administrator_id: z.string(),
    site: z.string().openapi({ description: 'The host for which alone it is good.' }),
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
  summary: "List the caller's own passkeys, the oldest first",
  description: 'A passkey is added where there is a browser: on the page /console/account.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: { query: z.strictObject(pageQuery) },
  responses: { 200: answer('A page of passkeys.', page(Passkey)) },
});

export const renamePasskey = defineRoute({
  method: 'patch',
  path: '/identity/passkeys/{passkey_id}',
  operationId: 'renamePasskey',
  summary: 'Give a passkey another name',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    params: z.strictObject({ passkey_id: id(EXAMPLE_PASSKEY_ID) }),
    body: json(z.strictObject({ name: text(200) }).openapi('PasskeyName'), {
      administrator: { name: 'Laptop' },
    }),
  },
  responses: { 200: answer('The passkey.', Passkey) },
  errors: ['not_found'],
});

export const deletePasskey = defineRoute({
  method: 'delete',
  path: '/identity/passkeys/{passkey_id}',
  operationId: 'deletePasskey',
  summary: 'Delete a passkey for good',
  description:
    'Needs a step-up for `identity.passkey.delete` and `passkey:` with its id: see `POST /identity/step-ups`.',
  tags: ['Administrators'],
  security: ANY_ADMINISTRATOR,
  request: {
    params: z.strictObject({ passkey_id: id(EXAMPLE_PASSKEY_ID) }),
    headers: z.object({
      'service-step-up': z.string().max(100).optional().openapi({ example: 'step-up-token' }),
    }),
  },
  responses: { 200: answer('The passkey, as it was.', Passkey) },
  errors: ['not_found', 'step_up_required'],
});
