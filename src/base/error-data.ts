import { inspect } from 'node:util';
import { type Problem, ServiceError } from './errors.ts';

/** A `ServiceError` as plain data, for a database row or a message to another thread. */
export interface ErrorData extends Pick<ServiceError, 'code' | 'message'> {
  readonly reason?: string;
  readonly remedy?: string;
  readonly problems?: readonly Problem[];
}

/**
 * Converts anything thrown into data. For an unexpected error, `bug` carries its stack as text, since
 * its other properties may not be cloneable.
 */
export function toErrorData(error: unknown): {
  readonly error: ErrorData;
  readonly bug?: Error;
} {
  if (!(error instanceof ServiceError)) {
    const message = 'unexpected error; see the log';
    const bug = Object.assign(new Error(String(error)), { stack: inspect(error) });
    return { error: { code: 'failure', message }, bug };
  }
  const { code, message, reason, remedy, problems } = error;
  return {
    error: {
      code,
      message,
      ...(reason !== undefined && { reason }),
      ...(remedy !== undefined && { remedy }),
      ...(problems.length > 0 && { problems }),
    },
  };
}

export function fromErrorData({ code, message, ...options }: ErrorData): ServiceError {
  return new ServiceError(code, message, options);
}
