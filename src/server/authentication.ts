import type { RouteConfig } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import type { Security, SecurityScheme } from '../api/http.ts';
import { ServiceError } from '../errors.ts';
import type { Scope } from '../scopes.ts';
import type { DevicesTable } from '../storage/tables.ts';
import type { AppEnv } from './app.ts';

/** An administrator's token that was sent with a request. */
export interface Caller {
  readonly administrator_id: string;
  readonly token_id: string;
  readonly scopes: ReadonlySet<Scope>;
}

/** What a device signs of a request. */
export interface ProvenRequest {
  readonly method: string;
  /** Origin of the public URL, path and query. */
  readonly url: string;
  readonly body: Uint8Array;
}

/** Who sent the request: one of these is there, by the schemes that the route's `security` names. */
export interface Callers {
  /** For `administrator`. */
  caller?: Caller;
  /** For `device`: the device whose key signed the request. */
  device?: DevicesTable;
  /** For `new_device`, not verified yet: the handler knows which key must have signed. */
  proof?: { readonly jwt: string; readonly request: ProvenRequest };
}

/** How the two kinds of credentials are checked. */
export interface Authenticators {
  /** @throws ServiceError `not_authenticated` or `not_allowed` */
  readonly administrator: (token: string, scope: Scope) => Promise<Caller>;
  /** @throws ServiceError `invalid_device_proof` */
  readonly device: (jwt: string, request: ProvenRequest) => Promise<DevicesTable>;
}

/** Lets through whom the route's `security` names, and keeps who it is in the context. */
export function authenticate(
  route: RouteConfig,
  authenticators: Authenticators,
  publicUrl: string,
): MiddlewareHandler<AppEnv> {
  const security: Security | undefined = route.security;
  if (security === undefined) throw new Error(`${route.path} does not say who may call it`);
  const schemes = new Map(
    security.flatMap((one) => Object.entries(one) as [SecurityScheme, string[]][]),
  );
  return async (c, next) => {
    if (schemes.size > 0) await identify(c, schemes, authenticators, publicUrl);
    await next();
  };
}

async function identify(
  c: Context<AppEnv>,
  schemes: ReadonlyMap<SecurityScheme, readonly string[]>,
  authenticators: Authenticators,
  publicUrl: string,
): Promise<void> {
  const [, scheme = '', credential = ''] =
    /^(\S+) +(\S+)$/.exec(c.req.header('authorization') ?? '') ?? [];
  const scopes = schemes.get('administrator');
  if (scheme.toLowerCase() === 'bearer' && scopes) {
    c.set('caller', await authenticators.administrator(credential, scopes[0] as Scope));
    return;
  }
  if (
    scheme.toLowerCase() === 'deviceproof' &&
    (schemes.has('device') || schemes.has('new_device'))
  ) {
    const { pathname, search } = new URL(c.req.url);
    const request = {
      method: c.req.method,
      url: `${publicUrl}${pathname}${search}`,
      body: c.get('body'),
    };
    if (schemes.has('new_device')) c.set('proof', { jwt: credential, request });
    else c.set('device', await authenticators.device(credential, request));
    return;
  }
  if (scopes) {
    throw new ServiceError('not_authenticated', 'the request has no token of an administrator', {
      reason: 'missing_token',
      remedy: 'Make one with `service-local identity tokens create`.',
    });
  }
  throw new ServiceError('invalid_device_proof', 'the request has no proof of a device', {
    reason: 'missing_proof',
  });
}
