/**
 * The hosted side over HTTP. A slice is a definition in `src/api/<area>.ts` (see `src/api/http.ts`),
 * its handlers here in `src/server/<area>.ts`, and its line in `SLICES` below:
 *
 * ```ts
 * export function addPlans(app: App, { identity }: Services): void {
 *   app.openapi(createPlan, async (c) => {
 *     const plan = await makePlan(identity, administratorActor(c), c.req.valid('json'));
 *     return c.json(planOf(plan), 201);
 *   });
 * }
 * ```
 *
 * A handler is called when the caller has shown to be one of those that `security` of the definition
 * names, with the scope, and when path, query and body are as defined. It throws `ServiceError` for
 * everything else; the frame makes the answer of it. What a request was sent as is in
 * `c.get('caller')` (administrator) or `c.get('device')`, or `c.get('proof')` where a key proves
 * itself that is no device yet (see `authentication.ts`).
 */
import { METHODS } from 'node:http';
import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import { ServiceError } from '../errors.ts';
import type { Identity } from '../identity/context.ts';
import { authenticate, type Authenticators, type Callers } from './authentication.ts';
import { readBody } from './body.ts';
import { addHealth } from './health.ts';
import { invalidRequest } from './invalid-request.ts';
import type { Log } from './log.ts';
import { addOpenApi } from './openapi.ts';
import { asServiceError, problemResponse } from './problem.ts';

/** What the slices work with. */
export interface Services {
  readonly identity: Identity;
  /** The origin that clients use: `https://licenses.example`. */
  readonly publicUrl: string;
  readonly log: Log;
  readonly authenticators: Authenticators;
}

export interface AppEnv {
  Variables: Callers & {
    /** In the answer's `X-Request-Id`, in problems and in the log. */
    request_id: string;
    /** The bytes of the body; empty where there is none. */
    body: Uint8Array;
  };
}

export type App = OpenAPIHono<AppEnv>;

const SLICES: readonly ((app: App, services: Services) => void)[] = [addHealth];

/** Of every answer; a slice can set others. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const;

export function createApp(services: Services): App {
  const { log } = services;
  const app = withGuards(new OpenAPIHono<AppEnv>(), services);

  app.use(async (c, next) => {
    const id = c.req.header('x-request-id') ?? '';
    c.set('request_id', /^[\w.-]{1,64}$/.test(id) ? id : crypto.randomUUID());
    c.header('X-Request-Id', c.get('request_id'));
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
    await next();
  });
  app.use(async (c, next) => {
    c.set('body', await readBody(c.req));
    await next();
  });
  for (const add of SLICES) add(app, services);
  addOpenApi(app, services);

  app.notFound((c) => {
    const allowed = methodsOf(app, c.req.path);
    if (allowed.length === 0) {
      return problemResponse(c, new ServiceError('not_found', 'there is no such path'));
    }
    c.header('Allow', allowed.join(', '));
    const message = `${c.req.path} takes ${allowed.join(' and ')} only`;
    return problemResponse(c, new ServiceError('method_not_allowed', message));
  });
  app.onError((thrown, c) => {
    const error = asServiceError(thrown);
    if (error.status >= 500) log.error({ err: thrown, request_id: c.get('request_id') });
    return problemResponse(c, error);
  });
  return app;
}

/** Registers routes so that what their definitions say of callers and of the request is what holds. */
function withGuards(app: App, { authenticators, publicUrl }: Services): App {
  const register = app.openapi as (
    route: RouteConfig,
    handler: never,
    hook: ReturnType<typeof invalidRequest>,
  ) => App;
  app.openapi = ((route: RouteConfig, handler: never) => {
    const middleware = authenticate(route, authenticators, publicUrl);
    return register({ ...route, middleware }, handler, invalidRequest(route));
  }) as typeof app.openapi;
  return app;
}

/** The methods for which there is a route at `path`. */
function methodsOf(app: App, path: string): string[] {
  const found = METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  );
  return found.includes('GET') ? ['HEAD', ...found].sort() : found;
}
