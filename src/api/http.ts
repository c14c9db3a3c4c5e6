/**
 * What the definitions of routes are made of. A route is defined once, in `src/api/<area>.ts`: from
 * it come the checks of requests, the types of handlers and clients, and the OpenAPI document.
 *
 * ```ts
 * export const Plan = z.strictObject({ plan_id: id('pro'), created_at: time }).openapi('Plan');
 *
 * export const createPlan = defineRoute({
 *   method: 'post',
 *   path: '/identity/plans',
 *   operationId: 'createPlan',
 *   summary: 'Make a plan',
 *   tags: ['Registry'],
 *   security: administrator('license'),
 *   request: { body: json(PlanInput, { administrator: { plan_id: 'pro', entitlements: [] } }) },
 *   responses: { 201: answer('The plan.', Plan) },
 *   errors: ['conflict'],
 * });
 * ```
 *
 * Every example is a promise that `test/server/examples.test.ts` keeps: it sends each example of a
 * body, with the examples of the path and the query beside it, and wants an answer that is defined
 * as a success. So every operation needs an example of its body, where it has one, and of each
 * parameter that is required (`id('pro')`, `.openapi({ example })`). What the examples speak of is
 * made in `test/server/example-world.ts`, anew for each of them. An example is sent by the first of
 * the callers that `security` names, or by the one after whom it is named: `device: {…}`.
 */
import { createRoute, z, type RouteConfig } from '@hono/zod-openapi';
import { LICENSE_STATUS_HEADER, type Feature } from '../lease/license-features.ts';
import { ERROR_CODES, ServiceError, type ErrorCode } from '../base/errors.ts';
import { hiddenCharacterProblem } from '../base/hidden-characters.ts';
import { bodyHash, PROOF_SECONDS, PROOF_TYPE, type ProofClaims } from '../base/proof-claims.ts';
import type { Scope } from '../base/scopes.ts';

/** The answer of every request that failed (RFC 9457), as `application/problem+json`. */
export const Problem = z
  .strictObject({
    type: z.literal('about:blank'),
    title: z.string().openapi({ description: 'The HTTP status in words.' }),
    status: z.int(),
    code: z.enum(ERROR_CODES).openapi({ description: 'What to decide on; stable.' }),
    detail: z.string().openapi({ description: 'What went wrong, for a person.' }),
    reason: z
      .string()
      .optional()
      .openapi({ description: 'Which of the causes that the code has; stable.' }),
    remedy: z.string().optional().openapi({ description: 'What can be done about it.' }),
    errors: z
      .array(
        z.strictObject({
          code: z.string().openapi({
            description:
              'Such as `missing_field`, `unknown_field`, `invalid_value`, `duplicate_field` for a JSON member that is given twice, or `nested_too_deep`.',
          }),
          pointer: z
            .string()
            .optional()
            .openapi({ description: 'Where in the body it is: a JSON pointer (RFC 6901).' }),
          detail: z.string(),
          suggestion: z.string().optional().openapi({ description: 'What was probably meant.' }),
        }),
      )
      .optional()
      .openapi({ description: 'All that is wrong with the request, when it is.' }),
    retryable: z
      .boolean()
      .openapi({ description: 'Whether the same request may succeed when it is sent again.' }),
    request_id: z.string().openapi({ description: 'Names the request in the log of the server.' }),
  })
  .openapi('Problem', {
    example: {
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      code: 'not_found',
      detail: 'there is no such path',
      retryable: false,
      request_id: '0198c0de-0000-7000-8000-000000000000',
    },
  });

export type Problem = z.infer<typeof Problem>;

/** What an id may be: as in a lease, 1 to 128 visible ASCII characters. */
export function id(example: string) {
  return z
    .string()
    .regex(/^[!-~]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
    .openapi({ example });
}

/** `machineHash` of a machine. */
export const machineHash = z
  .string()
  .regex(/^[\w-]{43}$/, 'must be 32 bytes in base64url')
  .openapi({
    description:
      'SHA-256, in base64url, of the text `service-local license binding v1`, a line feed and the id of the machine in lower case. A device sends it if its plan binds leases to machines; without it, such a request is refused with `not_allowed`, reason `machine_id_required`.',
  });

/** A name or a line for people to read, without hidden characters. */
export function text(longest: number) {
  return z
    .string()
    .min(1)
    .max(longest)
    .check((context) => {
      const message = hiddenCharacterProblem(context.value);
      if (message === undefined) return;
      context.issues.push({ code: 'custom', input: context.value, message });
    });
}

/**
 * A text that may have hidden characters: a search, which must find names from earlier versions, or
 * the reason of a halt, which must not fail because of them.
 */
export function searchText(longest: number) {
  return z
    .string()
    .min(1)
    .max(longest)
    .refine((value) => value.isWellFormed() && !/\p{Cc}/u.test(value), 'must be plain text');
}

/** RFC 3339 in UTC. */
export const time = z.iso
  .datetime({ error: 'must be a time in UTC, such as 2026-01-02T03:04:05Z' })
  .openapi({ example: '2026-01-02T03:04:05Z' });

/** Of an actor, in the member beside it. */
export const actorName = z.string().nullable().openapi({
  description:
    'The name that the administrator or device has now; null for who has none, and for nobody.',
  example: 'ada',
});

/** A time as `time` wants it. @param ms milliseconds since the Unix epoch. */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** The same where there may be none. */
export function formatInstantOrNull(ms: number | null): string | null {
  return ms === null ? null : formatInstant(ms);
}

/** Part of a list. */
export function page<T extends z.ZodType>(item: T) {
  return z.strictObject({
    items: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .openapi({ description: 'For the part after this one; null when there is none.' }),
  });
}

/** Parameters of a list; `z.strictObject({ ...pageQuery, customer_id: … })`. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(1000).default(100).openapi({ example: 100 }),
  cursor: z
    .string()
    .max(512)
    .optional()
    .openapi({ description: '`next_cursor` of the page before, with the same filter.' }),
} as const;

/** A body of JSON. @param examples requests that succeed, by name. */
export function json<T extends z.ZodType>(
  schema: T,
  examples: Readonly<Record<string, z.input<T>>>,
) {
  return {
    required: true,
    content: { 'application/json': { schema, examples: valued(examples) } },
  };
}

/** An answer of JSON. @param examples by name. */
export function answer<T extends z.ZodType>(
  description: string,
  schema: T,
  examples: Readonly<Record<string, z.output<T>>> = {},
) {
  return { description, content: { 'application/json': { schema, examples: valued(examples) } } };
}

function valued<T>(examples: Readonly<Record<string, T>>): Record<string, { value: T }> {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
}

/** Of `POST /auth/license/leases` with the body `{"renewal_id":"1"}`. */
const PROOF_EXAMPLE: ProofClaims = {
  iss: 'FxVhuO_Ir82yjJ8FMIoWpXpN_BZn-l_LcBqPspZfzfk',
  sub: 'FxVhuO_Ir82yjJ8FMIoWpXpN_BZn-l_LcBqPspZfzfk',
  aud: 'https://licenses.example',
  iat: 1_767_323_045,
  exp: 1_767_323_045 + PROOF_SECONDS,
  jti: '0198c0de-0000-7000-8000-000000000003',
  htm: 'POST',
  htu: 'https://licenses.example/auth/license/leases',
  bh: bodyHash(Buffer.from('{"renewal_id":"1"}')),
};

const PROOF = `A JWT by the Ed25519 key of an enrolled device: \`Authorization: DeviceProof <JWT>\`. It is good for this one request; make a new one for each.

Its header is \`{"typ":"${PROOF_TYPE}","alg":"EdDSA","kid":"<device_id>"}\`; the device_id is the RFC 7638 thumbprint of the public key. Its claims are those of DPoP (RFC 9449), and a hash of the body:

- \`iss\`, \`sub\`: the device_id.
- \`aud\`: the origin of the server, as in its \`server_public_url\`.
- \`iat\`, \`exp\`: seconds since the Unix epoch, at most ${PROOF_SECONDS} apart.
- \`jti\`: a UUID, used once.
- \`htm\`: the method.
- \`htu\`: the origin and the path, without the query.
- \`bh\`: the SHA-256 of the bytes of the body, which may be none, in base64url without padding.
- \`nonce\`: only where the answer to the request before was 401 with a header \`Service-Nonce\`: its value. It then counts instead of the times, so that a device whose clock is wrong can renew.

An example, of a request whose body is \`{"renewal_id":"1"}\`: \`${JSON.stringify(PROOF_EXAMPLE)}\``;

/** The callers there are: `Authorization: Bearer slt_…` and `Authorization: DeviceProof <JWT>`. */
export const SECURITY_SCHEMES = {
  administrator: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token of an administrator; what is named beside it is the scope it needs. The cookie of a session in the console stands for one with all scopes: then what changes something needs the `Service-CSRF` of the page, too, and an `Origin` of this server.',
  },
  device: {
    type: 'http',
    scheme: 'DeviceProof',
    description: PROOF,
  },
  new_device: {
    type: 'http',
    scheme: 'DeviceProof',
    description: 'The same by the key that is being enrolled.',
  },
  runner: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The token that the server has put into the cluster for the runner of a deployment.',
  },
} as const;

export type SecurityScheme = keyof typeof SECURITY_SCHEMES;

/** Who may send a request: one of these, which may name a scheme twice. Empty for anybody. */
export type Security = { [S in SecurityScheme]?: string[] }[];

/** An administrator whose token has all of the scopes. */
export function administrator(...scopes: Scope[]): Security {
  return [{ administrator: scopes }];
}

export const ANYBODY: Security = [];

/** The parts of the API. */
export const TAGS = {
  Server: 'Whether the server works, and how well.',
  Bots: 'Their specs, versions and events.',
  Production: 'Bots at work in clusters, and the runners that trade there.',
  Research: 'What research bots and assistants can ask, and do with the same scopes.',
  Knowledge: 'Documents that are searched and cited.',
  Risk: 'What people let bots do, beside the limits of each.',
  Compliance: 'Facts for those who have to answer for algorithms under RTS 6.',
  Tasks: 'Work in the background, and what came of it.',
  Leases: 'Issuing, renewing and revoking them.',
  Keys: 'Those that verify leases, and their rotation.',
  Devices: 'The machines that renew leases by themselves.',
  Registry: 'Customers, plans, contracts and deployments.',
  Administrators: 'Tokens, second factors and the audit log.',
} as const;

type Definition = Omit<RouteConfig, 'path'> & {
  readonly operationId: string;
  readonly summary: string;
  /** Of `TAGS`. */
  readonly tags: string[];
  readonly security: Security;
  /** What this server must be licensed for to do it. */
  readonly feature?: Feature;
  /** Whether narrowed tokens may call it. Its handler must check the subject of the request. */
  readonly narrowable?: true;
  /** Whether it can be told by an `Idempotency-Key` that a request is sent again: see `once`. */
  readonly idempotent?: true;
  /** Codes of its own: those that any request can meet are added. */
  readonly errors?: readonly ErrorCode[];
};

/** Where the route, and the OpenAPI document, have its `feature`. */
export const FEATURE_EXTENSION = 'x-license-feature';
/** Extension of a route and of the OpenAPI document that holds `narrowable`. */
export const NARROWABLE_EXTENSION = 'x-narrowed-tokens';

/**
 * What works whatever became of the license: the way back to a good one, what tells of the server,
 * and all that stops trading, by any such word anywhere in the path. Reading does, too.
 */
const NEVER_LICENSED =
  /^\/(auth|identity|healthz|readyz|metrics|openapi\.json|\.well-known)(\/|$)|halt|stop|cancel|kill/i;

/** A route with all that it takes and may answer. Query parameters that it does not name are refused. */
export function defineRoute<P extends string, R extends Definition & { path: P }>(
  definition: R,
): ReturnType<typeof createRoute<P, R>> {
  const { errors = [], feature, idempotent, narrowable, ...route } = definition;
  const { security, request = {} } = route;
  const codes: ErrorCode[] = [
    'invalid_request',
    ...(security.some((one) => one.administrator) ? NOT_ADMITTED : []),
    ...(security.some((one) => one.device || one.new_device) ? NOT_PROVEN : []),
    ...(request.body ? WRONG_BODY : []),
    ...(feature ? NOT_LICENSED : []),
    ...(idempotent ? ANOTHER_REQUEST : []),
    ...errors,
    ...UNABLE,
  ];
  if (feature && (route.method === 'get' || NEVER_LICENSED.test(route.path))) {
    throw new Error(`${route.method} ${route.path} must work without a license`);
  }
  const answers = idempotent
    ? withHeader(route.responses, REPLAYED_HEADER, REPLAYED)
    : route.responses;
  const responses = { ...problems(codes), ...answers };
  return createRoute<P, R>({
    ...route,
    ...(feature && { [FEATURE_EXTENSION]: feature }),
    ...(narrowable && { [NARROWABLE_EXTENSION]: true }),
    request: {
      query: z.strictObject({}),
      ...(idempotent && { headers: IdempotencyKey }),
      ...request,
    },
    // Of whatever status: the lease lets through also what then fails.
    responses: feature ? withHeader(responses, LICENSE_STATUS_HEADER, STATUS_HEADER) : responses,
  } as unknown as R);
}

/** `true` in an answer that was given before. */
export const REPLAYED_HEADER = 'Idempotency-Replayed';

const REPLAYED = {
  description: '`true` where this is the answer to an earlier request with the same key.',
  schema: { type: 'string' as const, enum: ['true'] },
};

export const IdempotencyKey = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[!-~]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
    .optional()
    .openapi({
      description:
        'Made by the caller, such as a UUID: a request with the same key and the same bytes gets the answer of the first one that succeeded, for 24 hours, and does nothing again.',
    }),
});

const NOT_ADMITTED: readonly ErrorCode[] = ['not_authenticated', 'not_allowed'];
const NOT_PROVEN: readonly ErrorCode[] = ['invalid_device_proof'];
const NOT_LICENSED: readonly ErrorCode[] = ['license_invalid'];
const ANOTHER_REQUEST: readonly ErrorCode[] = ['idempotency_mismatch'];
const WRONG_BODY: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type'];
const UNABLE: readonly ErrorCode[] = ['failure', 'overloaded', 'storage_unavailable'];

/** The failures by their status. */
function problems(codes: readonly ErrorCode[]): RouteConfig['responses'] {
  const byStatus = Map.groupBy(new Set(codes), (code) => new ServiceError(code, '').status);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.map((code) => `\`${code}\``).join(', '),
        content: { 'application/problem+json': { schema: Problem } },
      },
    ]),
  );
}

const STATUS_HEADER = {
  description: '`grace` on every answer to a request that a lease in its grace period let through.',
  schema: { type: 'string' as const, enum: ['grace'] },
};

function withHeader(
  responses: RouteConfig['responses'],
  name: string,
  header: object,
): RouteConfig['responses'] {
  const entries = Object.entries(responses).map(([status, response]) => {
    const { headers = {} } = response as { readonly headers?: object };
    return [status, { ...response, headers: { ...headers, [name]: header } }];
  });
  return Object.fromEntries(entries) as RouteConfig['responses'];
}
