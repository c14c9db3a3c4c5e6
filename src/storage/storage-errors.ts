import { ServiceError } from '../base/errors.ts';

/** @param cause error of the database or its driver, for the log only. */
export function storageUnavailable(cause: unknown): ServiceError {
  return new ServiceError('storage_unavailable', 'the database cannot be used', {
    remedy: 'Try again; if the error persists, read the log of the server.',
    cause,
  });
}

/** The connection broke during a commit, which may or may not have succeeded. */
export class OutcomeUnknown extends ServiceError {
  constructor(cause: unknown) {
    super('storage_unavailable', 'the database did not confirm a write', {
      reason: 'outcome_unknown',
      remedy: 'Check whether the change was made before trying again.',
      cause,
    });
  }
}

/** Converts a driver's error to `storage_unavailable`; errors for wrong arguments stay as they are. */
export function wrapDriverError(error: unknown): unknown {
  return isBug(error) || error instanceof ServiceError ? error : storageUnavailable(error);
}

/** As `wrapDriverError`, in a transaction, where callers throw their own errors, without `code`. */
export function wrapTransactionError(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? wrapDriverError(error) : error;
}

/** Node's errors for wrong arguments have codes, too, and these types. */
function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}
