import type { RouteConfig } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { getMetrics } from '../api/health.ts';
import { NARROWABLE_EXTENSION, type Security, type SecurityScheme } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import type { Actor } from '../identity/audit.ts';
import type { Registrar } from '../identity/grants.ts';
import { checkDeviceProof } from '../identity/device-proof.ts';
import { describeNarrowing } from '../identity/narrowing.ts';
import { authenticateToken, requireScope, type Caller } from '../identity/tokens.ts';
import type { Scope } from '../base/scopes.ts';
import { KnownCallers } from './known-callers.ts';
import type { AppEnv, Callers, Services } from './services.ts';
import { checkCsrf, CSRF_HEADER, refuseForeign, sessionOf } from './session-cookie.ts';

/** The administrator of the request, in the form of the audit log. */
export function actorOf(c: { readonly var: Callers }): Actor {
  return `administrator:${c.var.caller!.administrator_id}`;
}

/** The administrator of the request, with the step-up token of the request. */
export function registrarOf(c: Context<AppEnv>): Registrar {
  return { caller: c.var.caller!, step_up_token: c.req.header('service-step-up') };
}

/** Admits callers that the route's `security` allows, and stores the caller in the context. */
export function authenticate(
  route: RouteConfig,
  services: Pick<Services, 'identity' | 'origins'>,
): MiddlewareHandler<AppEnv> {
  const security: Security | undefined = route.security;
  if (security === undefined) throw new Error(`${route.path} does not say who may call it`);
  const named = security.flatMap((one) => Object.entries(one) as [SecurityScheme, string[]][]);
  const schemes = new Map<SecurityScheme, string[][]>();
  for (const [scheme, scopes] of named) {
    schemes.set(scheme, [...(schemes.get(scheme) ?? []), scopes]);
  }
  const known =
    route.path === getMetrics.path ? new KnownCallers(services.identity.clock) : undefined;
  return async (c, next) => {
    if (schemes.size > 0) await identify(c, schemes, services, known);
    const { caller } = c.var;
    if (caller !== undefined) refuseNarrowed(caller, route);
    await next();
  };
}

/** @param choices the caller needs all scopes of one choice. */
function requireAnyOf(caller: Caller, choices: readonly (readonly string[])[]): void {
  const has = (scope: string): boolean => caller.scopes.has(scope as Scope);
  if (choices.some((scopes) => scopes.every(has))) return;
  for (const scope of choices[0]!) requireScope(caller, scope as Scope);
}

function refuseNarrowed({ narrowing }: Caller, route: RouteConfig): void {
  if (narrowing === undefined || NARROWABLE_EXTENSION in route) return;
  throw new ServiceError('not_allowed', 'narrowed tokens may not use this operation', {
    reason: 'narrowed_token',
    remedy: `The token is for ${describeNarrowing(narrowing)}. Use another token, or log in with \`service-local login\`.`,
  });
}

/** Callers of requests that this process sends to itself, by request environment. */
const callersWithin = new WeakMap<object, Caller>();

/**
 * The environment with which `app.request` runs a request as the caller. Requests from outside cannot
 * have it.
 * @param client address of the client on whose behalf the request is made, see `addressOf`.
 */
export function asCaller(caller: Caller, client: string | null = null): object {
  const env = { client };
  callersWithin.set(env, caller);
  return env;
}

async function identify(
  c: Context<AppEnv>,
  schemes: ReadonlyMap<SecurityScheme, readonly (readonly string[])[]>,
  services: Pick<Services, 'identity' | 'origins'>,
  known: KnownCallers | undefined,
): Promise<void> {
  const { identity, origins } = services;
  const [, scheme = '', credential = ''] =
    /^(\S+) +(\S+)$/.exec(c.req.header('authorization') ?? '') ?? [];
  const choices = schemes.get('administrator');
  if (choices && scheme.toLowerCase() === 'bearer') {
    const { storage, clock } = identity;
    const check = () => authenticateToken(storage.read, clock(), credential);
    const caller = await (known?.identify(credential, check) ?? check());
    requireAnyOf(caller, choices);
    c.set('caller', caller);
    return;
  }
  const caller = choices && scheme === '' ? await callerWithoutToken(c, services) : undefined;
  if (choices && caller) {
    requireAnyOf(caller, choices);
    c.set('caller', caller);
    return;
  }
  if (schemes.has('runner')) {
    if (scheme.toLowerCase() !== 'bearer') {
      throw new ServiceError('not_authenticated', 'the request has no runner token', {
        reason: 'missing_token',
        remedy: 'Send the `token` from the Secret of the deployment.',
      });
    }
    c.set('runner_token', credential);
    return;
  }
  const isProof = scheme.toLowerCase() === 'deviceproof';
  const request = { method: c.req.method, url: c.req.url, body: c.get('body') };
  if (schemes.has('new_device') && isProof) {
    c.set('proof', { jwt: credential, request });
    return;
  }
  if (schemes.has('device') && isProof) {
    c.set('device', await checkDeviceProof(identity, credential, request, origins));
    return;
  }
  if (choices) {
    throw new ServiceError('not_authenticated', 'the request has no administrator token', {
      reason: 'missing_token',
      remedy:
        'Log in with `service-local login`, or create a token with `service-local identity tokens create`.',
    });
  }
  throw new ServiceError('invalid_device_proof', 'the request has no device proof', {
    reason: 'missing_proof',
    remedy: 'Send `Authorization: DeviceProof …` with a proof signed by the device key.',
  });
}

/** The caller of a request within this process, or the owner of the browser's login session. */
async function callerWithoutToken(
  c: Context<AppEnv>,
  services: Pick<Services, 'identity' | 'origins'>,
): Promise<Caller | undefined> {
  const caller = callersWithin.get((c.env as object | undefined) ?? {});
  if (caller !== undefined) return caller;
  const session = await sessionOf(c, services);
  if (session === undefined) return undefined;
  refuseForeign(c, services);
  const isRead = c.req.method === 'GET' || c.req.method === 'HEAD';
  if (!isRead) checkCsrf(session, c.req.header(CSRF_HEADER));
  return session.caller;
}
