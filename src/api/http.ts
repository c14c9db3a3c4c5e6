/**
 * Building blocks of route definitions. Each route is defined once, in `src/api/<area>.ts`, and
 * determines request validation, the types of handlers and clients, and the OpenAPI document.
 *
 * ```ts
 * export const Plan = z.strictObject({ plan_id: id('pro'), created_at: time }).openapi('Plan');
 *
 * export const createPlan = defineRoute({
 *   method: 'post',
 *   path: '/identity/plans',
 *   operationId: 'createPlan',
 *   summary: 'Create a plan',
 *   tags: ['Registry'],
 *   security: administrator('license'),
 *   request: { body: jsonBody(PlanInput, { administrator: { plan_id: 'pro', entitlements: [] } }) },
 *   responses: { 201: jsonResponse('The plan.', Plan) },
 *   errors: ['conflict'],
 * });
 * ```
 *
 * `test/server/examples.test.ts` sends each example of a body, together with the examples of the path
 * and query parameters, and expects a defined success response. So every operation needs an example
 * of its body and of each required parameter (`id('pro')`, `.openapi({ example })`).
 * `test/server/example-world.ts` creates the data that the examples refer to, separately for each
 * example. An example is sent by the first caller in `security`, or by the caller it is named after:
 * `device: {…}`.
 */
import { createRoute, z, type RouteConfig } from '@hono/zod-openapi';
import { LICENSE_STATUS_HEADER, type Feature } from '../lease/license-features.ts';
import { ERROR_CODES, ServiceError, type ErrorCode } from '../base/errors.ts';
import { hiddenCharacterProblem } from '../base/hidden-characters.ts';
import { bodyHash, PROOF_SECONDS, PROOF_TYPE, type ProofClaims } from '../base/proof-claims.ts';
import type { Scope } from '../base/scopes.ts';

/** Body of every error response (RFC 9457), as `application/problem+json`. */
export const Problem = z
  .strictObject({
    type: z.literal('about:blank'),
    title: z.string().describe('Reason phrase of the HTTP status.'),
    status: z.int(),
    code: z.enum(ERROR_CODES).describe('Stable error code for programs to act on.'),
    detail: z.string().describe('Explanation for people.'),
    reason: z.string().optional().describe('Stable name of the specific cause of the error code.'),
    remedy: z.string().optional().describe('How to resolve the error.'),
    errors: z
      .array(
        z.strictObject({
          code: z
            .string()
            .describe(
              'For example `missing_field`, `unknown_field`, `invalid_value`, `duplicate_field` (a JSON member that occurs twice) or `nested_too_deep`.',
            ),
          pointer: z
            .string()
            .optional()
            .describe('Location in the body, as a JSON pointer (RFC 6901).'),
          detail: z.string(),
          suggestion: z.string().optional().describe('Likely intended name or value.'),
        }),
      )
      .optional()
      .describe('All errors in the request.'),
    retryable: z.boolean().describe('Whether the same request may succeed later.'),
    request_id: z.string().describe('Identifies the request in the log of the server.'),
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

/** An id, with the syntax of ids in a lease. */
export function id(example: string) {
  return z
    .string()
    .regex(/^[!-~]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
    .openapi({ example });
}

export const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export function stepUpHeader(description: string) {
  return {
    'service-step-up': z.string().optional().openapi({ description, example: 'step-up-token' }),
  };
}

/** Result of `machineHash`. */
export const machineHash = z
  .string()
  .regex(/^[\w-]{43}$/, 'must be 32 bytes in base64url')
  .describe(
    'SHA-256, in base64url, of the text `service-local license binding v1`, a line feed and the lower-case machine id. Required if the plan binds leases to machines: without it, the request fails with `not_allowed`, reason `machine_id_required`.',
  );

/** Text for people, without hidden characters. */
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
 * Text that may contain hidden characters: a search, which must find names stored by earlier
 * versions, or the reason of a halt, which must not fail because of them.
 */
export function searchText(longest: number) {
  return z
    .string()
    .min(1)
    .max(longest)
    .refine((value) => value.isWellFormed() && !/\p{Cc}/u.test(value), 'must be plain text');
}

/** An RFC 3339 time in UTC. */
export const time = z.iso
  .datetime({ error: 'must be a time in UTC, such as 2026-01-02T03:04:05Z' })
  .openapi({ example: '2026-01-02T03:04:05Z' });

/** Current name of the actor in the preceding field. */
export const actorName = z.string().nullable().openapi({
  description:
    'Current name of the administrator or device; null if there is no actor or the actor has no name.',
  example: 'ada',
});

/** Formats a time as the schema `time` expects it. @param ms milliseconds since the Unix epoch. */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

export function formatInstantOrNull(ms: number | null): string | null {
  return ms === null ? null : formatInstant(ms);
}

export function page<T extends z.ZodType>(item: T) {
  return z.strictObject({
    items: z.array(item),
    next_cursor: z
      .string()
      .nullable()
      .describe('`cursor` of the next page; null on the last page.'),
  });
}

/** Query parameters of a list: `z.strictObject({ ...pageQuery, customer_id: … })`. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(1000).default(100).openapi({ example: 100 }),
  cursor: z
    .string()
    .max(512)
    .optional()
    .describe('`next_cursor` of the previous page, which must have had the same filter.'),
} as const;

/** A JSON request body. @param examples requests that succeed, by name. */
export function jsonBody<T extends z.ZodType>(
  schema: T,
  examples: Readonly<Record<string, z.input<T>>>,
) {
  return {
    required: true,
    content: { 'application/json': { schema, examples: toExamples(examples) } },
  };
}

export function jsonResponse<T extends z.ZodType>(description: string, schema: T) {
  return { description, content: { 'application/json': { schema, examples: {} } } };
}

function toExamples<T>(examples: Readonly<Record<string, T>>): Record<string, { value: T }> {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
}

/** Claims of a proof for `POST /auth/license/leases` with the body `{"renewal_id":"1"}`. */
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

const PROOF = `A JWT signed with the Ed25519 key of an enrolled device: \`Authorization: DeviceProof <JWT>\`. It is valid for one request.

Its header is \`{"typ":"${PROOF_TYPE}","alg":"EdDSA","kid":"<device_id>"}\`; the device_id is the RFC 7638 thumbprint of the public key. Its claims are those of DPoP (RFC 9449) and a hash of the body:

- \`iss\`, \`sub\`: the device_id.
- \`aud\`: the origin of the server, as in its \`server_public_url\`.
- \`iat\`, \`exp\`: seconds since the Unix epoch, at most ${PROOF_SECONDS} apart.
- \`jti\`: a UUID, used once.
- \`htm\`: the method.
- \`htu\`: the origin and the path, without the query.
- \`bh\`: the SHA-256 of the bytes of the body, which may be empty, in base64url without padding.
- \`nonce\`: the value of the header \`Service-Nonce\` if the previous response was 401 with this header. The nonce then replaces the check of \`iat\` and \`exp\`, so that a device with a wrong clock can renew.

Example for a request with the body \`{"renewal_id":"1"}\`: \`${JSON.stringify(PROOF_EXAMPLE)}\``;

/** Callers send `Authorization: Bearer slt_…` or `Authorization: DeviceProof <JWT>`. */
export const SECURITY_SCHEMES = {
  administrator: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token of an administrator with the listed scopes. The cookie of a login session in the console is equivalent to a token with all scopes; requests that change data then also need the `Service-CSRF` header of the page and an `Origin` of this server.',
  },
  device: {
    type: 'http',
    scheme: 'DeviceProof',
    description: PROOF,
  },
  new_device: {
    type: 'http',
    scheme: 'DeviceProof',
    description: 'A device proof signed with the key that is being enrolled.',
  },
  runner: {
    type: 'http',
    scheme: 'bearer',
    description: 'The token that the server created in the cluster for the runner of a deployment.',
  },
} as const;

export type SecurityScheme = keyof typeof SECURITY_SCHEMES;

/** Accepted callers, of which the request needs one. A scheme may occur twice; empty for public routes. */
export type Security = { [S in SecurityScheme]?: string[] }[];

export function administrator(...scopes: Scope[]): Security {
  return [{ administrator: scopes }];
}

export const PUBLIC: Security = [];

export const TAGS = {
  Server: 'Health, metrics and the API description.',
  Bots: 'Specs, versions and events of bots.',
  Production: 'Deployments to clusters, and their runners.',
  Research: 'Research bots and the tools of assistants.',
  Knowledge: 'Documents that can be searched and cited.',
  Risk: 'Thresholds of the firm, and overrides of limits.',
  Notifications: 'Rules for notifications, channels, and deliveries.',
  Compliance: 'Tests and reports for RTS 6.',
  Tasks: 'Background tasks and their results.',
  Searches: 'Searches for parameters whose trials run on workers.',
  Leases: 'Issuing, renewing and revoking leases.',
  Keys: 'Keys that verify leases, and their rotation.',
  Devices: 'Machines that renew their leases themselves.',
  Registry: 'Customers, plans, contracts and installations.',
  Administrators: 'Tokens, second factors and the audit log.',
} as const;

type Definition = Omit<RouteConfig, 'path'> & {
  readonly operationId: string;
  readonly summary: string;
  /** Names from `TAGS`. */
  readonly tags: string[];
  readonly security: Security;
  /** Feature of the server's license that the route requires. */
  readonly feature?: Feature;
  /** Whether narrowed tokens may call the route. Its handler must then check the token's subjects. */
  readonly narrowable?: true;
  /** Whether the route accepts an `Idempotency-Key`; its handler uses `createOnce`. */
  readonly idempotent?: true;
  /** Error codes besides those that are added for every route with the same security and body. */
  readonly errors?: readonly ErrorCode[];
};

/** Extension of a route and of the OpenAPI document that holds `feature`. */
export const FEATURE_EXTENSION = 'x-license-feature';
export const NARROWABLE_EXTENSION = 'x-narrowed-tokens';

/** Paths that must never require a license: license renewal, diagnostics, and everything that stops trading. */
const NEVER_LICENSED =
  /^\/(auth|identity|healthz|readyz|metrics|openapi\.json|\.well-known)(\/|$)|halt|stop|cancel|kill/i;

/** Completes a route with its common errors and headers, and rejects undeclared query parameters. */
export function defineRoute<P extends string, R extends Definition & { path: P }>(
  definition: R,
): ReturnType<typeof createRoute<P, R>> {
  const { errors = [], feature, idempotent, narrowable, ...route } = definition;
  const { security, request = {} } = route;
  const codes: ErrorCode[] = [
    'invalid_request',
    ...(security.some((scheme) => scheme.administrator) ? TOKEN_ERRORS : []),
    ...(security.some((scheme) => scheme.device || scheme.new_device) ? PROOF_ERRORS : []),
    ...(request.body ? BODY_ERRORS : []),
    ...(feature ? LICENSE_ERRORS : []),
    ...(idempotent ? IDEMPOTENCY_ERRORS : []),
    ...errors,
    ...COMMON_ERRORS,
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
    // Errors carry the header too: a lease in its grace period also admits requests that then fail.
    responses: feature ? withHeader(responses, LICENSE_STATUS_HEADER, STATUS_HEADER) : responses,
  } as unknown as R);
}

export const REPLAYED_HEADER = 'Idempotency-Replayed';

const REPLAYED = {
  description: '`true` if this is the stored response to an earlier request with the same key.',
  schema: { type: 'string' as const, enum: ['true'] },
};

export const IdempotencyKey = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[!-~]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
    .optional()
    .describe(
      'Chosen by the caller, for example a UUID. For 24 hours, a repeated request with the same key and the same bytes gets the response of the first one that succeeded and has no further effect.',
    ),
});

const TOKEN_ERRORS: readonly ErrorCode[] = ['not_authenticated', 'not_allowed'];
const PROOF_ERRORS: readonly ErrorCode[] = ['invalid_device_proof'];
const LICENSE_ERRORS: readonly ErrorCode[] = ['license_invalid'];
const IDEMPOTENCY_ERRORS: readonly ErrorCode[] = ['idempotency_mismatch'];
const BODY_ERRORS: readonly ErrorCode[] = ['payload_too_large', 'unsupported_media_type'];
const COMMON_ERRORS: readonly ErrorCode[] = ['failure', 'overloaded', 'storage_unavailable'];

/** Responses for error codes, grouped by HTTP status. */
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
  description:
    '`grace` on every response to a request that was admitted by a lease in its grace period.',
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
