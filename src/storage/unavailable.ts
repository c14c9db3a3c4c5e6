import { ServiceError } from '../errors.ts';

/** The error for callers; `cause` is what the database or its driver reported, for the log only. */
export function storageUnavailable(cause: unknown): ServiceError {
  return new ServiceError('storage_unavailable', 'the database did not do what it was asked to', {
    remedy: 'Try again; if it stays so, see the log of the server.',
    cause,
  });
}

/** The connection broke while a commit was under way: it may have been done or not. */
export class OutcomeUnknown extends ServiceError {
  constructor(cause: unknown) {
    super('storage_unavailable', 'the database did not confirm what it was asked to write', {
      reason: 'outcome_unknown',
      remedy: 'See whether it has been done before you try again.',
      cause,
    });
  }
}

/** An error that a driver threw, as `storage_unavailable`; wrong arguments stay as they are. */
export function ofDriver(error: unknown): unknown {
  return isBug(error) || error instanceof ServiceError ? error : storageUnavailable(error);
}

/** The same for what a work threw, which may be an error of its own: those of drivers have codes. */
export function ofWork(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? ofDriver(error) : error;
}

/** Node's own errors have codes, too; those of wrong arguments are of these types. */
function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}
