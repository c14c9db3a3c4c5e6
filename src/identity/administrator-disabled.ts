import { ServiceError } from '../base/errors.ts';

/** The error for every credential of a disabled administrator. */
export function administratorDisabled(): ServiceError {
  return new ServiceError('not_authenticated', 'the administrator is disabled', {
    reason: 'administrator_disabled',
    remedy:
      "An operator can enable the account on the server's machine: " +
      '`service-local identity administrators reset`.',
  });
}
