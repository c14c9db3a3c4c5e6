import { inspect } from 'node:util';
import { ServiceError } from '../../base/errors.ts';
import type { TaskError } from './lifecycle.ts';

/**
 * Why work failed, as it is kept and told to other threads; and the cause where nobody expected it,
 * made of text: what else an error holds may be nothing that can go to another thread.
 */
export function asTaskError(error: unknown): {
  readonly error: TaskError;
  readonly bug?: Error;
} {
  if (!(error instanceof ServiceError)) {
    const message = 'it failed for a reason nobody expected';
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

/** The error that was told. */
export function fromTaskError({ code, message, ...options }: TaskError): ServiceError {
  return new ServiceError(code, message, options);
}
