import { ServiceError } from '../errors.ts';
import type { TaskError } from './lifecycle.ts';

/** Why work failed, as it is kept and told to other threads; and the cause where nobody expected it. */
export function asTaskError(error: unknown): {
  readonly error: TaskError;
  readonly bug?: unknown;
} {
  if (!(error instanceof ServiceError)) {
    const message = 'it failed for a reason nobody expected';
    return { error: { code: 'failure', message }, bug: error };
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

/** The error that was told. */
export function fromTaskError({ code, message, ...options }: TaskError): ServiceError {
  return new ServiceError(code, message, options);
}
