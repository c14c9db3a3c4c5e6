import { inspect } from 'node:util';
import { type Problem, ServiceError } from './errors.ts';

/** A `ServiceError` as plain data, for a database row or a message to another thread. */
export interface ErrorData extends Pick<ServiceError, 'code' | 'message'> {
  readonly reason?: string;
  readonly remedy?: string;
  readonly problems?: readonly Problem[];
}

/** Converts anything thrown into data. An unexpected error is also returned as `bug`. */
export function toErrorData(error: unknown): {
  readonly error: ErrorData;
  readonly bug?: Error;
} {
  if (!(error instanceof ServiceError)) {
    const message = 'unexpected error; see the log';
    return { error: { code: 'failure', message }, bug: toPlainError(error) };
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

/** Converts anything thrown into a cloneable error, whose stack describes the causes, too. */
export function toPlainError(error: unknown): Error {
  return Object.assign(new Error(String(error)), { stack: inspect(error) });
}

export function fromErrorData({ code, message, ...options }: ErrorData): ServiceError {
  return new ServiceError(code, message, options);
}
