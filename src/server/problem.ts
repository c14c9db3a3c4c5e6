import { STATUS_CODES } from 'node:http';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Problem } from '../api/http.ts';
import type { ServiceError } from '../base/errors.ts';
import type { AppEnv } from './services.ts';

/** Answers with what went wrong (RFC 9457), in a form that has no more than the error says. */
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
  // A device whose clock is wrong signs this instead of the time.
  if ('nonce' in error && typeof error.nonce === 'string') c.header('Service-Nonce', error.nonce);
  return c.body(JSON.stringify(problem), status as ContentfulStatusCode, {
    'Content-Type': 'application/problem+json',
  });
}

/** `errors` of a problem, if there are any. */
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
