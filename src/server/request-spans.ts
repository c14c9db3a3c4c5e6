import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { RUNNER_PATH } from '../api/runners.ts';
import { inSpan } from '../base/tracing.ts';
import { asServiceError } from './service-error.ts';
import type { AppEnv } from './services.ts';

/** Requests that follow each other every few seconds, and belong to no trace of their own. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * Records a span for each request, as a child of the header `traceparent`. Attributes name the
 * matched route instead of the path, and never contain the query, headers or body.
 */
export const traceRequests: MiddlewareHandler<AppEnv> = async (c, next) => {
  const { method, path } = c.req;
  const parent = c.req.header('traceparent') ?? null;
  const isRoutine = PROBES.has(path) || (RUNNER_PATH.test(path) && parent === null);
  if (isRoutine) return next();
  const attributes = { 'http.request.method': method };
  return inSpan(method, { kind: 'server', parent, attributes }, async (span) => {
    await next();
    if (span === undefined) return;
    const route = matchedRoutes(c).at(-1)!.path.replace('/*', 'none');
    const { status } = c.res;
    span.rename(`${method} ${route}`);
    span.set({
      'http.route': route,
      'http.response.status_code': status,
      'service_local.request_id': c.get('request_id'),
    });
    if (status >= 500) span.fail(c.error ? asServiceError(c.error).code : 'failure');
  });
};
