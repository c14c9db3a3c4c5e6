import { STATUS_CODES } from 'node:http';
import type { MiddlewareHandler } from 'hono';
import { LICENSE_STATUS_HEADER } from '../lease/license-features.ts';
import { licenseInvalid, type Decision, type Refusal } from './decide.ts';

/**
 * Passes requests while `check` allows the feature. During a grace period every response, whatever its
 * status, has the header `X-Service-License-Status: grace`.
 *
 * @param refuse returns the response to other requests, or throws; by default a problem (RFC 9457).
 */
export function requireFeature(
  check: (feature: string) => Decision,
  feature: string,
  refuse: (feature: string, refusal: Refusal) => Response = problemOf,
): MiddlewareHandler {
  return async (c, next) => {
    const decision = check(feature);
    if (!decision.allowed) return refuse(feature, decision);
    await next();
    if (decision.status === 'grace') c.header(LICENSE_STATUS_HEADER, 'grace');
    return undefined;
  };
}

function problemOf(feature: string, refusal: Refusal): Response {
  const { status, code, message, reason, remedy, retryable } = licenseInvalid(feature, refusal);
  const title = STATUS_CODES[status];
  return Response.json(
    { type: 'about:blank', title, status, code, detail: message, reason, remedy, retryable },
    { status, headers: { 'Content-Type': 'application/problem+json' } },
  );
}
