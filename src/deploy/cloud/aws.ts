import { ServiceError } from '../../base/errors.ts';

const MOST_ATTEMPTS = 5;

/** Milliseconds per attempt; the SDK retries after a timeout. */
const TIMEOUTS = { connectionTimeout: 5000, requestTimeout: 15_000, throwOnRequestTimeout: true };

export interface AwsPlace {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

/** The SDK finds the credentials, and the region and endpoint if they are not given. */
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
    throw new ServiceError('conflict', `the package ${name} is not installed`, {
      reason: 'not_installed',
      remedy: `Install it next to service-local with \`npm install ${name}\`.`,
    });
  }
}

/** The fields of an SDK error that are used here. */
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
 * Converts an SDK error. The message contains the name of the AWS error but not its text, because
 * that can quote the request, which contains secrets.
 *
 * @param what The action that failed, such as `write NAME`.
 */
export function awsFailure(what: string, error: unknown): ServiceError {
  const { name, message, code, $metadata } = error as Thrown;
  const status = $metadata?.httpStatusCode;
  const request = $metadata?.requestId === undefined ? '' : `, request ${$metadata.requestId}`;
  const kind = typeof code === 'string' ? code : name;
  const text = `cannot ${what}: ${kind}${request}`;
  if (name === 'Error' && message === 'Region is missing') {
    return new ServiceError('invalid_setting', `cannot ${what}: no AWS region is set`, {
      remedy: 'Set `region` in cloud_file, or set the environment variable AWS_REGION.',
    });
  }
  if (NO_CREDENTIALS.has(name)) {
    return new ServiceError('not_allowed', `cannot ${what}: no AWS credentials found`, {
      reason: 'no_credentials',
      remedy: 'Set AWS_PROFILE or the environment variables of a role, as for the `aws` command.',
    });
  }
  if (REFUSED_CALLERS.has(name)) {
    return new ServiceError('not_allowed', text, {
      reason: 'cloud_denied',
      remedy: 'Grant the permissions that `service-local cloud iam` prints.',
    });
  }
  const isUnclear = status === undefined || status >= 500 || status === 429 || /Throttl/.test(name);
  return isUnclear
    ? new ServiceError('cloud_unavailable', text, {
        remedy: 'Run the command again later; it resumes where it stopped.',
      })
    : new ServiceError('conflict', text, { reason: 'cloud_refused' });
}
