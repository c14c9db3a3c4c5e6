import { HTTPException } from 'hono/http-exception';
import { ServiceError, type ErrorCode } from '../base/errors.ts';

/** Converts a thrown value to an error for the caller, without revealing details of a bug. */
export function asServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  if (thrown instanceof HTTPException) return fromHttpException(thrown);
  return new ServiceError('failure', 'unexpected error in the server', {
    remedy: 'Report the request_id to the operator of the server; the log has the details.',
    cause: thrown,
  });
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  415: 'unsupported_media_type',
};

function fromHttpException(error: HTTPException): ServiceError {
  const code = CODE_OF_STATUS[error.status];
  if (code === undefined) return new ServiceError('failure', 'unexpected error in the server');
  return code === 'unsupported_media_type'
    ? new ServiceError(code, 'the body is not JSON', { remedy: 'Send it as application/json.' })
    : new ServiceError(code, 'the body is not valid JSON');
}
