import { ServiceError } from '../base/errors.ts';

type HaltFailureReason = 'halt_not_in_force' | 'halt_unknown';

const REMEDY =
  'Bots may still be trading. Request the halt again. If it fails again, stop the servers and workers, and cancel open orders at the exchange.';

/**
 * Adds to a failure whether the requested halt is in force.
 * @param isExcluded whether it is certain that nothing was written.
 */
export function haltFailure(error: ServiceError, isExcluded: boolean): ServiceError {
  if (isHaltReason(error.reason)) return error;
  const reason: HaltFailureReason = isExcluded ? 'halt_not_in_force' : 'halt_unknown';
  const what = isExcluded
    ? 'THE HALT IS NOT IN FORCE'
    : 'IT IS NOT KNOWN WHETHER THE HALT IS IN FORCE';
  const { code, message, problems, retryAfterSeconds, cause } = error;
  return new ServiceError(code, `${what}: ${message}`, {
    reason,
    remedy: REMEDY,
    problems,
    cause,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}

export function isHaltReason(reason: string | undefined): reason is HaltFailureReason {
  return reason === 'halt_not_in_force' || reason === 'halt_unknown';
}
