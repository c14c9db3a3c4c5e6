/** What the two clients of AWS have in common. Each is loaded when it is used. */
import { ServiceError } from '../../base/errors.ts';

const MOST_ATTEMPTS = 5;

/** What an answer of AWS may take, before it is asked for once more. */
const TIMEOUTS = { connectionTimeout: 5000, requestTimeout: 15_000, throwOnRequestTimeout: true };

export interface AwsPlace {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

/** Options of a client; credentials are found by the SDK, and region and endpoint unless given. */
export function clientOptions({ region, endpoint }: AwsPlace) {
  return {
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    maxAttempts: MOST_ATTEMPTS,
    requestHandler: TIMEOUTS,
  };
}

/** @throws ServiceError `conflict`, reason `not_installed` */
export async function installed<T>(name: string, loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new ServiceError('conflict', `this needs the package ${name}`, {
      reason: 'not_installed',
      remedy: `Install it beside service-local with \`npm install ${name}\`.`,
    });
  }
}

/** What is used of an error of the SDK. */
interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
}

const REFUSED_CALLERS = new Set([
  'AccessDeniedException',
  'AccessDenied',
  'ExpiredTokenException',
  'IncompleteSignature',
  'InvalidClientTokenId',
  'InvalidSignatureException',
  'MissingAuthenticationTokenException',
  'UnrecognizedClientException',
]);
const NO_CREDENTIALS = new Set(['CredentialsProviderError', 'TokenProviderError']);

/**
 * An error of the SDK as one of ours. What AWS says of it is left out, since it may quote what was
 * sent: the name says what was wrong.
 *
 * @param what was to be done: `write NAME`.
 */
export function awsFailure(what: string, error: unknown): ServiceError {
  const { name, message, code, $metadata } = error as Thrown;
  const status = $metadata?.httpStatusCode;
  const request = $metadata?.requestId === undefined ? '' : `, request ${$metadata.requestId}`;
  const kind = typeof code === 'string' ? code : name;
  const text = `cannot ${what}: ${kind}${request}`;
  if (name === 'Error' && message === 'Region is missing') {
    return new ServiceError('invalid_setting', `cannot ${what}: no region is named`, {
      remedy: 'Name it in cloud_file, or set AWS_REGION.',
    });
  }
  if (NO_CREDENTIALS.has(name)) {
    return new ServiceError('not_allowed', `cannot ${what}: there are no credentials for AWS`, {
      reason: 'no_credentials',
      remedy: 'Set AWS_PROFILE or the variables of a role, as for the command `aws`.',
    });
  }
  if (REFUSED_CALLERS.has(name)) {
    return new ServiceError('not_allowed', text, {
      reason: 'cloud_denied',
      remedy: 'See `service-local cloud iam` for what each role must be allowed.',
    });
  }
  const isUnclear = status === undefined || status >= 500 || status === 429 || /Throttl/.test(name);
  return isUnclear
    ? new ServiceError('cloud_unavailable', text, {
        remedy: 'Run it again when that is over: it goes on where it stopped.',
      })
    : new ServiceError('conflict', text, { reason: 'cloud_refused' });
}
