import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { ServiceError } from '../base/errors.ts';
import { authenticateSession, type Session } from '../identity/login-sessions.ts';
import { SESSION_MS } from '../identity/session-term.ts';
import type { AppEnv, Services } from './services.ts';

type Parts = Pick<Services, 'identity' | 'origins'>;

/** Header with the CSRF token of the login session, required for requests that change data. */
export const CSRF_HEADER = 'Service-CSRF';

/**
 * With TLS, the `__Host-` prefix keeps other hosts of the domain from setting the cookie. Plain HTTP,
 * which is meant for loopback, cannot use it; servers on other ports of the machine receive the cookie.
 */
function cookieName(services: Pick<Services, 'origins'>): string {
  return isSecure(services) ? '__Host-service-local' : 'service-local';
}

/** Whether the public URL has https. */
export function isSecure({ origins: [origin] }: Pick<Services, 'origins'>): boolean {
  return origin.startsWith('https:');
}

/** Secret in the cookie; undefined without one. */
export function sessionSecret(c: Context<AppEnv>, services: Parts): string | undefined {
  return getCookie(c, cookieName(services));
}

/** Sets the cookie; `undefined` deletes it. */
export function setSessionSecret(
  c: Context<AppEnv>,
  services: Parts,
  secret: string | undefined,
): void {
  setCookie(c, cookieName(services), secret ?? '', {
    path: '/',
    httpOnly: true,
    sameSite: 'Strict',
    secure: isSecure(services),
    maxAge: secret === undefined ? 0 : SESSION_MS / 1000,
  });
}

/**
 * The login session of the request; undefined without a cookie.
 * @throws ServiceError `not_authenticated`
 */
export async function sessionOf(c: Context<AppEnv>, services: Parts): Promise<Session | undefined> {
  const secret = sessionSecret(c, services);
  return secret === undefined ? undefined : authenticateSession(services.identity, secret);
}

/**
 * Rejects requests from pages of other origins, based on headers that browsers set.
 * @throws ServiceError `not_allowed` with the reason `foreign_origin`
 */
export function refuseForeign(c: Context<AppEnv>, { origins }: Pick<Services, 'origins'>): void {
  const origin = c.req.header('origin');
  const site = c.req.header('sec-fetch-site');
  const isRead = c.req.method === 'GET' || c.req.method === 'HEAD';
  const isOwnOrigin =
    origin === undefined ? isRead || site !== undefined : origins.includes(origin);
  const isOwnSite = site === undefined || site === 'same-origin' || (isRead && site === 'none');
  if (isOwnOrigin && isOwnSite) return;
  throw new ServiceError('not_allowed', 'the request is not from a page of this server', {
    reason: 'foreign_origin',
    remedy: `Open the console at ${origins[0]}, or start the server with the origin that you use as --public-url.`,
  });
}

export function checkCsrf(session: Pick<Session, 'csrf_token'>, given: string | undefined): void {
  if (given === session.csrf_token) return;
  throw new ServiceError(
    'not_allowed',
    'the request has no valid CSRF token of its login session',
    {
      reason: 'csrf',
      remedy: 'Reload the page and try again.',
    },
  );
}
