import { ServiceError } from '../errors.ts';

/** What the database said is the cause, for the log; the message goes to callers. */
export function storageUnavailable(cause: unknown): ServiceError {
  return new ServiceError('storage_unavailable', 'the database did not do what it was asked to', {
    remedy: 'Try again; if it stays so, see the log of the server.',
    cause,
  });
}

/** An error of the database or of the way to it as `storage_unavailable`; any other as it is. */
export function asStorageError(error: unknown): unknown {
  // Node's own errors have codes, too; those of wrong arguments are of these types.
  const isBug = error instanceof TypeError || error instanceof RangeError;
  const isOfDatabase =
    error instanceof Error && !(error instanceof ServiceError) && !isBug && 'code' in error;
  return isOfDatabase ? storageUnavailable(error) : error;
}
