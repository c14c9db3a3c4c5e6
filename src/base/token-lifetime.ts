import { ServiceError } from './errors.ts';
import { formatSeconds, parseSeconds } from './seconds.ts';

/** Limits of the lifetime of a token, in seconds. */
export const TOKEN_MIN_SECONDS = 60;
export const TOKEN_MAX_SECONDS = 365 * 86_400;

/**
 * Parses the lifetime of a token, such as `12h`, to seconds.
 * @throws ServiceError `usage`
 */
export function parseTokenLifetime(text: string): number {
  const seconds = parseSeconds(text);
  if (seconds >= TOKEN_MIN_SECONDS && seconds <= TOKEN_MAX_SECONDS) return seconds;
  const range = `between ${formatSeconds(TOKEN_MIN_SECONDS)} and ${formatSeconds(TOKEN_MAX_SECONDS)}`;
  throw new ServiceError('usage', `the lifetime of a token must be ${range}, not ${text}`);
}
