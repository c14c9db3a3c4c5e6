import { HTTPException } from 'hono/http-exception';
import { ServiceError, type ErrorCode } from '../base/errors.ts';

/** What went wrong as a caller may know it: of a bug, no more than that it is one. */
export function asServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  if (thrown instanceof HTTPException) return fromHttpException(thrown);
  return new ServiceError('failure', 'the server failed to do it', {
    remedy: 'Tell the operator of the server the request_id: the log has the rest.',
    cause: thrown,
  });
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  415: 'unsupported_media_type',
};

function fromHttpException(error: HTTPException): ServiceError {
  const code = CODE_OF_STATUS[error.status];
  if (code === undefined) return new ServiceError('failure', 'the server failed to do it');
  return code === 'unsupported_media_type'
    ? new ServiceError(code, 'the body is not JSON', { remedy: 'Send it as application/json.' })
    : new ServiceError(code, 'the body is no JSON that can be read');
}
