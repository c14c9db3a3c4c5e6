import { STATUS_CODES } from 'node:http';
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Problem } from '../api/http.ts';
import { ServiceError, type ErrorCode } from '../errors.ts';
import { asStorageError } from '../storage/unavailable.ts';
import type { AppEnv } from './app.ts';

/** What went wrong as a caller may know it: of a bug, no more than that it is one. */
export function asServiceError(thrown: unknown): ServiceError {
  const error = asStorageError(thrown);
  if (error instanceof ServiceError) return error;
  if (error instanceof HTTPException) return ofHono(error);
  return new ServiceError('failure', 'the server failed to do it', {
    remedy: 'Tell the operator of the server the request_id: the log has the rest.',
    cause: thrown,
  });
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  415: 'unsupported_media_type',
};

function ofHono(error: HTTPException): ServiceError {
  const code = CODE_OF_STATUS[error.status];
  if (code === undefined) return new ServiceError('failure', 'the server failed to do it');
  return code === 'unsupported_media_type'
    ? new ServiceError(code, 'the body is not JSON', { remedy: 'Send it as application/json.' })
    : new ServiceError(code, 'the body is no JSON that can be read');
}

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
    ...(problems.length > 0 && {
      errors: problems.map(({ code: what, pointer, message: detail, suggestion }) => ({
        code: what,
        ...(pointer !== undefined && { pointer }),
        detail,
        ...(suggestion !== undefined && { suggestion }),
      })),
    }),
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
