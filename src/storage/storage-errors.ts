import { ServiceError } from '../base/errors.ts';

/** The error for callers; `cause` is what the database or its driver reported, for the log only. */
export function storageUnavailable(cause: unknown): ServiceError {
  return new ServiceError('storage_unavailable', 'the database did not do what it was asked to', {
    remedy: 'Try again; if it stays so, see the log of the server.',
    cause,
  });
}

/** The connection broke during a commit, which may or may not have succeeded. */
export class OutcomeUnknown extends ServiceError {
  constructor(cause: unknown) {
    super('storage_unavailable', 'the database did not confirm a write', {
      reason: 'outcome_unknown',
      remedy: 'Check whether the change was made before you try again.',
      cause,
    });
  }
}

/** An error that a driver threw, as `storage_unavailable`; wrong arguments stay as they are. */
export function wrapDriverError(error: unknown): unknown {
  return isBug(error) || error instanceof ServiceError ? error : storageUnavailable(error);
}

/**
 * The same for an error thrown inside a transaction, which may be the caller's own: only driver
 * errors have codes.
 */
export function wrapTransactionError(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? wrapDriverError(error) : error;
}

/** Node's own errors have codes, too; errors for wrong arguments have these types. */
function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}
