import type { createLease, LeaseAnswer, LeaseRequest } from '../api/leases.ts';
import type { getKeyset } from '../api/keys.ts';
import { ServiceError } from '../errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { importKeyset, type TrustedKeys } from '../lease/keys.ts';
import { verifyLease } from '../lease/verify.ts';
import { createClient, type Client, type ClientOptions } from './client.ts';
import type { DeviceKey } from './device-key.ts';
import { makeDeviceProof } from './device-proof.ts';

export interface DeviceClientOptions extends Omit<ClientOptions, 'authorize'> {
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

/** Signs each request with the key of this device. */
export function connectAsDevice(
  { clock, ...options }: DeviceClientOptions,
  key: DeviceKey,
): Client {
  return createClient({
    ...options,
    authorize: (request, nonce) => `DeviceProof ${makeDeviceProof(key, request, clock(), nonce)}`,
  });
}

/** The keys that verify leases, as the server publishes them, for the keyset file. */
export interface FetchedKeyset {
  readonly text: string;
  readonly keys: TrustedKeys;
}

/** @throws ServiceError of the server, `invalid_data` for what is no keyset */
export async function fetchKeyset(server: Client): Promise<FetchedKeyset> {
  const keyset = await server.call<typeof getKeyset>('get', '/.well-known/license-keys.json', {});
  const imported = importKeyset(keyset);
  if (!imported.ok) throw unusable('keyset', imported);
  return { text: JSON.stringify(keyset), keys: imported.keys };
}

/** A lease as it came, which nobody has verified yet. */
export interface FetchedLease {
  /** For the lease file. */
  readonly text: string;
  readonly limits: LeaseAnswer['limits'];
  readonly warnings: LeaseAnswer['warnings'];
}

/** @throws ServiceError of the server */
export async function fetchLease(
  server: Client,
  body: Extract<LeaseRequest, { renewal_id: string }>,
): Promise<FetchedLease> {
  const answer: Partial<LeaseAnswer> = await server.call<typeof createLease>(
    'post',
    '/auth/license/leases',
    { body },
  );
  const { lease = null, limits = [], warnings = [] } = answer;
  // Of an answer that has none, `null`, which is refused as any other text would be.
  return { text: JSON.stringify(lease), limits, warnings };
}

/** What the lease must say that answers a request. */
export type Asked = Pick<LeaseClaims, 'renewal_id' | 'device_thumbprint'> & {
  /** Undefined when it may be any. */
  readonly deployment_id?: string | undefined;
};

/** @throws ServiceError `invalid_data` for a lease that does not verify, or is not the one asked for */
export function checkLease(text: string, keys: TrustedKeys, asked: Asked): LeaseClaims {
  const result = verifyLease(text, keys);
  if (!result.ok) throw unusable('lease', result);
  const { claims } = result;
  for (const name of ['renewal_id', 'device_thumbprint', 'deployment_id'] as const) {
    if (asked[name] === undefined || claims[name] === asked[name]) continue;
    const detail = `its ${name} is ${claims[name]}, not ${asked[name]}`;
    throw unusable('lease', { reason: 'other_lease', detail });
  }
  return claims;
}

export function unusable(
  what: 'keyset' | 'lease',
  { reason, detail }: { readonly reason: string; readonly detail: string },
): ServiceError {
  return new ServiceError(
    'invalid_data',
    `the ${what} that the server gave is unusable: ${detail}`,
    {
      reason,
      remedy:
        'No file was changed. Try it again; if that does not help, ask whoever runs the server.',
    },
  );
}
