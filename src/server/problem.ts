import { STATUS_CODES } from 'node:http';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Problem } from '../api/http.ts';
import type { ServiceError } from '../base/errors.ts';
import type { AppEnv } from './services.ts';

/** Sends an error as a problem document (RFC 9457). */
export function problemResponse(c: Context<AppEnv>, error: ServiceError): Response {
  const { status, code, message, reason, remedy, problems, retryable, retryAfterSeconds } = error;
  const problem: Problem = {
    type: 'about:blank',
    title: STATUS_CODES[status]!,
    status,
    code,
    detail: message,
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
    ...serializeProblems(problems),
    retryable,
    request_id: c.get('request_id'),
  };
  if (retryAfterSeconds !== undefined) c.header('Retry-After', String(retryAfterSeconds));
  if (status === 401) c.header('WWW-Authenticate', 'Bearer, DeviceProof');
  // A device with a wrong clock signs the nonce instead of the time.
  if ('nonce' in error && typeof error.nonce === 'string') c.header('Service-Nonce', error.nonce);
  return c.body(JSON.stringify(problem), status as ContentfulStatusCode, {
    'Content-Type': 'application/problem+json',
  });
}

/** The member `errors` of a problem document, if there are any. */
export function serializeProblems(problems: ServiceError['problems']): Pick<Problem, 'errors'> {
  if (problems.length === 0) return {};
  return {
    errors: problems.map(({ code, pointer, message: detail, suggestion }) => ({
      code,
      ...(pointer !== undefined && { pointer }),
      detail,
      ...(suggestion !== undefined && { suggestion }),
    })),
  };
}
