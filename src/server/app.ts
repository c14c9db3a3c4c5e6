/**
 * The HTTP server. A group of routes has a definition in `src/api/<area>.ts` (see `src/api/http.ts`),
 * handlers in `src/server/<area>.ts`, and an entry in `ROUTES` below:
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
 * A handler runs only if the caller satisfies `security` of the definition, this server is licensed
 * for its `feature`, and the request matches the schemas. Handlers throw `ServiceError`, from which the
 * app builds the error response. The caller is `c.get('caller')` for an administrator and
 * `c.get('device')` for a device, whose proof the handler must mark as used. `c.get('proof')` is an
 * unchecked proof of a key that belongs to no device yet.
 */
import { METHODS } from 'node:http';
import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { validateBot } from '../api/bot-specs.ts';
import { createBot, updateBot } from '../api/bots.ts';
import { haltFailure } from '../api/halt-failure.ts';
import { addDocument, DOCUMENTS_PATH } from '../api/knowledge.ts';
import { createLease } from '../api/leases.ts';
import { reportRunner } from '../api/runners.ts';
import { queueShards, storeInput } from '../api/searches.ts';
import { startBacktest } from '../api/tasks.ts';
import { recordTrials } from '../api/trials.ts';
import { addConsole } from './console/console.ts';
import { errorPage, acceptsHtml } from './console/error-page.ts';
import { SIGN_IN_PATH } from './console/sign-in.ts';
import { ServiceError } from '../base/errors.ts';
import { addAccount } from './account.ts';
import { addAdministrators } from './administrators.ts';
import { addAgents } from './agents.ts';
import { addAnalyses } from './analyses.ts';
import { limitAttempts, PASSKEYS, PASSWORDS, warnAboutProxies } from './login-attempts.ts';
import { authenticate } from './authentication.ts';
import { readBody } from './body.ts';
import { addBotSpecs } from './bot-specs.ts';
import { addBotState } from './bot-state.ts';
import { addBots } from './bots.ts';
import { addComparison } from './comparison.ts';
import { addComplianceTests } from './compliance-tests.ts';
import { addDeployments } from './deployments.ts';
import { addDevices } from './devices.ts';
import { addHalts } from './halts.ts';
import { addHealth, addMetrics, addSizes } from './health.ts';
import { invalidRequest } from './invalid-request.ts';
import { refuseJsonFaults } from './json-faults.ts';
import { addKeys } from './keys.ts';
import { addKnowledge } from './knowledge.ts';
import { addLeases } from './leases.ts';
import { addLicenses } from './licenses.ts';
import { requireLicense } from './license.ts';
import { addMcp } from './mcp.ts';
import { addNotifications } from './notifications.ts';
import { addOpenApi } from './openapi.ts';
import { addOverview } from './overview.ts';
import { addPaper } from './paper.ts';
import { asServiceError } from './service-error.ts';
import { problemResponse } from './problem.ts';
import { addRegistry } from './registry.ts';
import { addReplay } from './replay.ts';
import { addRisk } from './risk.ts';
import { addResearch } from './research.ts';
import { traceRequests } from './request-spans.ts';
import { addRunners, admitRunner } from './runners.ts';
import { isSecure, refuseForeign, sessionOf } from './session-cookie.ts';
import { addSearches } from './searches.ts';
import { addSessionViews } from './session-views.ts';
import { addTasks } from './tasks.ts';
import { addTrials } from './trials.ts';
import { addValidationReports } from './validation-reports.ts';
import type { App, AppEnv, Services } from './services.ts';

const ROUTES: readonly ((app: App, services: Services) => void)[] = [
  addAccount,
  addAdministrators,
  addAgents,
  addAnalyses,
  // Before the routes of one bot, whose paths its own would match.
  addBotSpecs,
  addBots,
  addBotState,
  addComparison,
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
  addNotifications,
  addOpenApi,
  addOverview,
  addPaper,
  addRegistry,
  addReplay,
  addRisk,
  addResearch,
  addRunners,
  addSearches,
  addSizes,
  addSessionViews,
  addTasks,
  addTrials,
  addValidationReports,
];

const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  // Clients recognize the server by this header.
  'Service-Name': 'service-local',
  'X-Content-Type-Options': 'nosniff',
};

/** RFC 6797: one year, and only for this host, because other hosts of the domain may lack TLS. */
const HSTS = { 'Strict-Transport-Security': 'max-age=31536000' };

const EDITOR_FORM = /^\/console\/bots\/(new|[^/]+\/edit)$/;

/** Longer than the timeout of database statements, shorter than the timeout of clients. */
const REQUEST_TIMEOUT_MS = 30_000;

/** @param timeoutMs time limit of each request. */
export function createApp(services: Services, timeoutMs = REQUEST_TIMEOUT_MS): App {
  const app = withGuards(new OpenAPIHono<AppEnv>(), services);
  const headers = Object.entries({ ...HEADERS, ...(isSecure(services) && HSTS) });

  app.use(async (c, next) => {
    const startedAt = performance.now();
    const id = c.req.header('x-request-id') ?? '';
    c.set('request_id', /^[\w.-]{1,64}$/.test(id) ? id : crypto.randomUUID());
    c.header('X-Request-Id', c.get('request_id'));
    for (const [name, value] of headers) c.header(name, value);
    await traceRequests(c, async () => {
      await next();
      recordRequest(c, services, performance.now() - startedAt);
    });
  });
  // Only authenticated callers may send large bodies.
  app.on('POST', DOCUMENTS_PATH, authenticate(addDocument, services));
  app.on('POST', createBot.path, authenticate(createBot, services));
  app.on('POST', validateBot.path, authenticate(validateBot, services));
  app.on('PUT', '/bots/:bot_ref', authenticate(updateBot, services));
  app.on('POST', '/bots/:bot_ref/backtest', authenticate(startBacktest, services));
  app.on('PUT', '/searches/:search_id/inputs/*', authenticate(storeInput, services));
  app.on('POST', '/searches/:search_id/shards', authenticate(queueShards, services));
  app.on('POST', recordTrials.path, authenticate(recordTrials, services));
  const runner = '/deployments/:deployment_id/runner';
  app.on('POST', runner, authenticate(reportRunner, services), admitRunner(services));
  app.use(async (c, next) => {
    // The forms of editors contain code. Only an administrator who is signed in may send so much.
    const isEditor = EDITOR_FORM.test(c.req.path) && (await sessionOf(c, services)) !== undefined;
    c.set('body', await readBody(c.req, isEditor));
    await withTimeout(next(), timeoutMs);
  });
  // Reject requests from foreign pages first, so that they cannot use up the attempts of their visitors.
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
      ? new ServiceError('method_not_allowed', `this path supports only ${allowed.join(' and ')}`)
      : new ServiceError('not_found', 'no such path', {
          remedy: '/openapi.json lists all paths.',
        });
    c.error = error;
    return respondWithError(c, services, error);
  });
  app.onError((thrown, c) =>
    respondWithError(c, services, addHaltOutcome(c, asServiceError(thrown))),
  );
  return app;
}

/** Halt requests of the API and the console. */
const HALT_PATH = /^(\/console)?\/(bots\/[^/]+\/halt|bots\/halt-all|halt-all)$/;

/** Adds to an error of a halt request whether the halt is in force. */
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
  return acceptsHtml(c) ? errorPage(c, services, error) : problemResponse(c, error);
}

/** Registers each route with the checks that its definition requires. */
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

/** Rejects after the time limit; the work itself continues. */
async function withTimeout(work: Promise<void>, timeoutMs: number): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(
      new ServiceError('overloaded', `the request took longer than ${timeoutMs / 1000} seconds`, {
        remedy: 'The request may still complete. Check its result before you try again.',
        retryAfterSeconds: 5,
      }),
    );
  }, timeoutMs);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Requested every few seconds; successful requests are logged at level debug. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

function recordRequest(c: Context<AppEnv>, { log, metrics }: Services, ms: number): void {
  const { method } = c.req;
  // Not decoded, because a decoded path could forge lines of the log.
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

function methodsOf(app: App, path: string): string[] {
  const found = METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  );
  return found.includes('GET') ? ['HEAD', ...found].sort() : found;
}
