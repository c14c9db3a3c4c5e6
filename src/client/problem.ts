import type { Problem } from '../api/http.ts';
import { ERROR_CODES, ServiceError } from '../base/errors.ts';

/** Whether a response body is a problem document (RFC 9457) of this API. */
export function isProblem(body: unknown): body is Problem {
  if (!hasTexts(body, ['code', 'detail'], ['reason', 'remedy', 'request_id'])) return false;
  const { errors = [] } = body as Partial<Problem>;
  return (
    Array.isArray(errors) &&
    errors.every((error) => hasTexts(error, ['code', 'detail'], ['pointer', 'suggestion']))
  );
}

/** Whether `value` is an object with string members; those in `optional` may be absent. */
function hasTexts(
  value: unknown,
  required: readonly string[],
  optional: readonly string[],
): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const members = value as Readonly<Record<string, unknown>>;
  return (
    required.every((name) => typeof members[name] === 'string') &&
    optional.every((name) => members[name] === undefined || typeof members[name] === 'string')
  );
}

/**
 * Returns the error that a problem document describes. A code that this version does not know becomes
 * `failure`.
 *
 * @param retryAfter value of the `Retry-After` header, in seconds.
 */
export function errorFromProblem(
  {
    code,
    detail,
    reason,
    remedy,
    errors = [],
  }: Pick<Problem, 'code' | 'detail' | 'reason' | 'remedy' | 'errors'>,
  retryAfter?: unknown,
): ServiceError {
  const retryAfterSeconds = Number(retryAfter ?? NaN);
  return new ServiceError(ERROR_CODES.includes(code) ? code : 'failure', detail, {
    problems: errors.map(({ code: kind, detail: message, pointer, suggestion }) => ({
      code: kind,
      message,
      ...(pointer !== undefined && { pointer }),
      ...(suggestion !== undefined && { suggestion }),
    })),
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
    ...(Number.isFinite(retryAfterSeconds) && { retryAfterSeconds }),
  });
}
