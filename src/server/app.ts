/**
 * The hosted side over HTTP. A slice is a definition in `src/api/<area>.ts` (see `src/api/http.ts`),
 * its handlers here in `src/server/<area>.ts`, and its line in `ROUTES` below:
 *
 * ```ts
 * export function addPlans(app: App, { identity }: Services): void {
 *   app.openapi(createPlan, async (c) => {
 *     const plan = await makePlan(identity, actorOf(c), c.req.valid('json'));
 *     return c.json(planOf(plan), 201);
 *   });
 * }
 * ```
 *
 * A handler is called when the request is from one of those that `security` of the definition names,
 * with the scope, when this server is licensed for the `feature` that it may name, and when its path,
 * query and body are as defined. It throws `ServiceError` for
 * everything else, of which the frame makes the answer. Who sent the request is in `c.get('caller')`
 * for an administrator, in `c.get('device')` for a device, whose proof the handler uses up, and in
 * `c.get('proof')` where a key is to be checked that is no device's yet. What happens is counted in
 * `services.metrics`.
 */
import { METHODS } from 'node:http';
import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { createBot, updateBot } from '../api/bots.ts';
import { haltFailure } from '../api/halt-failure.ts';
import { addDocument, DOCUMENTS_PATH } from '../api/knowledge.ts';
import { createLease } from '../api/leases.ts';
import { addConsole } from './console/console.ts';
import { errorPage, isForPerson } from './console/error-page.ts';
import { SIGN_IN_PATH } from './console/sign-in.ts';
import { ServiceError } from '../base/errors.ts';
import { addAccount } from './account.ts';
import { addAdministrators } from './administrators.ts';
import { addAgents } from './agents.ts';
import { limitAttempts, PASSKEYS, PASSWORDS, warnAboutProxies } from './login-attempts.ts';
import { authenticate } from './authentication.ts';
import { readBody } from './body.ts';
import { addBotState } from './bot-state.ts';
import { addBots } from './bots.ts';
import { addComplianceTests } from './compliance-tests.ts';
import { addDeployments } from './deployments.ts';
import { addDevices } from './devices.ts';
import { addHalts } from './halts.ts';
import { addHealth, addMetrics } from './health.ts';
import { invalidRequest } from './invalid-request.ts';
import { refuseJsonFaults } from './json-faults.ts';
import { addKeys } from './keys.ts';
import { addKnowledge } from './knowledge.ts';
import { addLeases } from './leases.ts';
import { addLicenses } from './licenses.ts';
import { requireLicense } from './license.ts';
import { addMcp } from './mcp.ts';
import { addOpenApi } from './openapi.ts';
import { addPaper } from './paper.ts';
import { asServiceError } from './service-error.ts';
import { problemResponse } from './problem.ts';
import { addRegistry } from './registry.ts';
import { addReplay } from './replay.ts';
import { addRisk } from './risk.ts';
import { addResearch } from './research.ts';
import { isSecure, refuseForeign } from './session-cookie.ts';
import { addRunners } from './runners.ts';
import { addTasks } from './tasks.ts';
import { addValidationReports } from './validation-reports.ts';
import type { App, AppEnv, Services } from './services.ts';

const ROUTES: readonly ((app: App, services: Services) => void)[] = [
  addAccount,
  addAdministrators,
  addAgents,
  addBots,
  addBotState,
  addComplianceTests,
  addConsole,
  addDeployments,
  addDevices,
  addHalts,
  addHealth,
  addKeys,
  addKnowledge,
  addLeases,
  addLicenses,
  addMcp,
  addMetrics,
  addOpenApi,
  addPaper,
  addRegistry,
  addReplay,
  addRisk,
  addResearch,
  addRunners,
  addTasks,
  addValidationReports,
];

/** Headers of every answer; a slice can replace them. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  // Clients recognize this server by it.
  'Service-Name': 'service-local',
  'X-Content-Type-Options': 'nosniff',
};

/** RFC 6797. One year; only this host, since others of the domain may not have TLS. */
const HSTS = { 'Strict-Transport-Security': 'max-age=31536000' };

/** Longer than the timeout of a database statement, and shorter than that of clients. */
const REQUEST_TIMEOUT_MS = 30_000;

export function createApp(services: Services): App {
  const app = withGuards(new OpenAPIHono<AppEnv>(), services);
  const headers = Object.entries({ ...HEADERS, ...(isSecure(services) && HSTS) });

  app.use(async (c, next) => {
    const startedAt = performance.now();
    const id = c.req.header('x-request-id') ?? '';
    c.set('request_id', /^[\w.-]{1,64}$/.test(id) ? id : crypto.randomUUID());
    c.header('X-Request-Id', c.get('request_id'));
    for (const [name, value] of headers) c.header(name, value);
    await next();
    recordRequest(c, services, performance.now() - startedAt);
  });
  // Only authenticated callers may send bodies of this size.
  app.on('POST', DOCUMENTS_PATH, authenticate(addDocument, services));
  app.on('POST', createBot.path, authenticate(createBot, services));
  app.on('PUT', '/bots/:bot_ref', authenticate(updateBot, services));
  app.use(async (c, next) => {
    c.set('body', await readBody(c.req));
    await withTimeout(next());
  });
  // Foreign pages are refused first, so that they cannot use up the attempts of their visitors.
  const foreign: MiddlewareHandler<AppEnv> = async (c, next) => {
    if (c.req.header('origin') !== undefined) refuseForeign(c, services);
    await next();
  };
  app.use(warnAboutProxies(services));
  const passwords = limitAttempts(services, PASSWORDS);
  for (const path of ['/identity/tokens', SIGN_IN_PATH]) app.on('POST', path, foreign, passwords);
  app.on('POST', `${SIGN_IN_PATH}/:step`, foreign, limitAttempts(services, PASSKEYS));
  for (const add of ROUTES) add(app, services);

  app.notFound((c) => {
    const allowed = methodsOf(app, c.req.path);
    const isPath = allowed.length > 0;
    if (isPath) c.header('Allow', allowed.join(', '));
    const error = isPath
      ? new ServiceError('method_not_allowed', `there is ${allowed.join(' and ')} at this path`)
      : new ServiceError('not_found', 'there is nothing at this path', {
          remedy: 'See /openapi.json for all paths.',
        });
    c.error = error;
    return respondWithError(c, services, error);
  });
  app.onError((thrown, c) =>
    respondWithError(c, services, addHaltOutcome(c, asServiceError(thrown))),
  );
  return app;
}

/** API and console. */
const HALT_PATH = /^(\/console)?\/(bots\/[^/]+\/halt|bots\/halt-all|halt-all)$/;

/** A failed halt request reports whether the halt is in force. */
function addHaltOutcome(c: Context<AppEnv>, error: ServiceError): ServiceError {
  if (c.req.method !== 'POST' || error.status < 500 || !HALT_PATH.test(c.req.path)) return error;
  const isExcluded = error.code === 'storage_unavailable' && error.reason !== 'outcome_unknown';
  return haltFailure(error, isExcluded);
}

function respondWithError(
  c: Context<AppEnv>,
  services: Services,
  error: ServiceError,
): Response | Promise<Response> {
  return isForPerson(c) ? errorPage(c, services, error) : problemResponse(c, error);
}

/** Registers routes so that what their definitions say of callers and of the request is what holds. */
function withGuards(app: App, services: Services): App {
  const register = app.openapi as (
    route: RouteConfig,
    handler: never,
    hook: ReturnType<typeof invalidRequest>,
  ) => App;
  app.openapi = ((route: RouteConfig, handler: never) => {
    const middleware = [authenticate(route, services), ...requireLicense(route, services)];
    if (route.request?.body) middleware.push(refuseJsonFaults);
    return register({ ...route, middleware }, handler, invalidRequest(route));
  }) as typeof app.openapi;
  return app;
}

/** Answers the caller when the time is up; the work itself continues. */
async function withTimeout(work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(
      new ServiceError('overloaded', `it takes longer than ${REQUEST_TIMEOUT_MS / 1000} seconds`, {
        remedy: 'See whether it has been done, and try again later.',
        retryAfterSeconds: 5,
      }),
    );
  }, REQUEST_TIMEOUT_MS);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Probes come every few seconds; successful ones are logged as debug. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

function recordRequest(c: Context<AppEnv>, { log, metrics }: Services, ms: number): void {
  const { method } = c.req;
  // Not decoded, because a decoded path could imitate lines of the log.
  const path = new URL(c.req.url).pathname;
  const { status } = c.res;
  const route = matchedRoutes(c).at(-1)!.path.replace('/*', 'none');
  metrics.requestSeconds.observe({ method, route, status }, ms / 1000);
  const failure = c.error && asServiceError(c.error);
  if (failure && route === createLease.path) {
    metrics.denied.inc({ code: failure.code, reason: failure.reason ?? '' });
    if (failure.code === 'credential_cloned') metrics.clonesSuspected.inc();
  }
  const level =
    status < 500 ? (PROBES.has(path) ? 'debug' : 'info') : failure?.cause ? 'error' : 'warn';
  log[level]({
    request_id: c.get('request_id'),
    method,
    path: path.slice(0, 200),
    status,
    ms: Math.round(ms),
    ...(failure && { code: failure.code, reason: failure.reason }),
    ...(level === 'error' && { err: c.error }),
  });
}

/** The methods for which there is a route at `path`. */
function methodsOf(app: App, path: string): string[] {
  const found = METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  );
  return found.includes('GET') ? ['HEAD', ...found].sort() : found;
}
