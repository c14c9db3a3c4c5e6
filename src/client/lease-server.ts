import type { createLease, LeaseAnswer, LeaseRequest } from '../api/leases.ts';
import type { getKeyset } from '../api/keys.ts';
import { ServiceError } from '../errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { encodeBase64Url } from '../lease/base64.ts';
import { importKeyset, type TrustedKeys } from '../lease/keys.ts';
import { verifyLease } from '../lease/verify.ts';
import { ANSWER_TIMEOUT_MS, createClient, type Client, type ClientOptions } from './client.ts';
import type { DeviceKey } from './device-key.ts';
import { makeDeviceProof } from './device-proof.ts';

export interface DeviceClientOptions extends Omit<ClientOptions, 'authorize' | 'largestAnswer'> {
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

/** Leases and keys take far less. */
const LARGEST_ANSWER = 1024 * 1024;

/** Signs each request with the key of this device. All requests together may take `timeoutMs`. */
export function connectAsDevice(
  { clock, timeoutMs = ANSWER_TIMEOUT_MS, signal, ...options }: DeviceClientOptions,
  key: DeviceKey,
): Client {
  const timeout = AbortSignal.timeout(timeoutMs);
  return createClient({
    ...options,
    timeoutMs,
    largestAnswer: LARGEST_ANSWER,
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
    authorize: (request, nonce) => `DeviceProof ${makeDeviceProof(key, request, clock(), nonce)}`,
  });
}

/** The keys that verify leases, as the server publishes them. */
export interface FetchedKeyset {
  /** For the keyset file: of what came, only what counts. */
  readonly text: string;
  readonly keys: TrustedKeys;
}

/** @throws ServiceError of the server, `invalid_data` for what is no keyset */
export async function fetchKeyset(server: Client): Promise<FetchedKeyset> {
  const answer = await server.call<typeof getKeyset>('get', '/.well-known/license-keys.json', {});
  const imported = importKeyset(answer);
  if (!imported.ok) throw unusable('keyset', imported);
  const text = keysetText(imported.keys);
  // As whoever verifies by the file will read it.
  const read = importKeyset(text);
  if (!read.ok) throw unusable('keyset', read);
  return { text, keys: read.keys };
}

/** The content of a keyset file with these keys. */
export function keysetText(keys: Iterable<readonly [id: string, bytes: Uint8Array]>): string {
  const jwks = Array.from(keys, ([kid, bytes]) => ({
    kty: 'OKP',
    crv: 'Ed25519',
    x: encodeBase64Url(bytes),
    kid,
  }));
  return JSON.stringify({ keys: jwks });
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
