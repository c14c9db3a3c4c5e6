import type { MiddlewareHandler } from 'hono';
import { ServiceError } from '../base/errors.ts';
import { createRateLimiter, type RateLimit } from '../base/rate-limit.ts';
import { addressOf, clientNetwork } from './client-address.ts';
import type { AppEnv, Services } from './services.ts';

/** Fewer than the login queue holds; each password check takes a quarter of a second of CPU time. */
export const PASSWORDS: RateLimit = { burst: 15, intervalMs: 4000 };
/** Passkey checks are cheap and have their own limit, so that passwords cannot exhaust it. */
export const PASSKEYS: RateLimit = { burst: 30, intervalMs: 250 };

/**
 * Limits login attempts from one network, across all names. Each server counts separately, from its
 * start.
 */
export function limitAttempts(services: Services, limit: RateLimit): MiddlewareHandler<AppEnv> {
  const waitMsOf = createRateLimiter(services.identity.clock, limit);
  return async (c, next) => {
    const network = clientNetwork(c, services);
    const waitMs = network === '' ? 0 : waitMsOf(network);
    if (waitMs > 0) throw tooMany(Math.ceil(waitMs / 1000));
    await next();
  };
}

function tooMany(retryAfterSeconds: number): ServiceError {
  return new ServiceError('rate_limited', 'too many login attempts from this address', {
    reason: 'address',
    remedy: `Try again in ${retryAfterSeconds} s.`,
    retryAfterSeconds,
  });
}

/**
 * Logs once that a proxy may be missing from `server_trusted_proxies`, in which case all its clients
 * count as one address.
 */
export function warnAboutProxies(services: Services): MiddlewareHandler<AppEnv> {
  let hasWarned = false;
  return async (c, next) => {
    if (!hasWarned && c.req.header('x-forwarded-for') !== undefined) {
      const address = addressOf(c, { isProxy: () => false });
      if (address !== null && !services.isProxy(address)) {
        hasWarned = true;
        services.log.warn(
          `X-Forwarded-For from ${address} is ignored: if this is your proxy, add it with --trusted-proxies; otherwise one of its clients can lock out all others`,
        );
      }
    }
    await next();
  };
}
