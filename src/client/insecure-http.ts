import { ServiceError } from '../base/errors.ts';
import { isLoopbackHost } from '../base/loopback.ts';

/**
 * Refuses plain HTTP to another host, where anyone on the network path can read and change requests.
 * @throws ServiceError `usage`, reason `insecure_http`
 */
export function refuseInsecure(url: string, insecure: boolean | undefined): void {
  const { origin } = new URL(url);
  if (insecure === true || !isInsecure(origin)) return;
  throw new ServiceError(
    'usage',
    `${origin} uses plain http: others on the network can read and change what is sent there`,
    {
      reason: 'insecure_http',
      remedy:
        'Use the https address of the server. On a network that you trust, allow plain http with --insecure, or with `server_insecure: true` in config.yaml.',
    },
  );
}

/** Whether requests to this origin leave the machine unencrypted. */
export function isInsecure(origin: string): boolean {
  return origin.startsWith('http:') && !isLoopback(origin);
}

export function isLoopback(origin: string): boolean {
  return isLoopbackHost(new URL(origin).hostname);
}
