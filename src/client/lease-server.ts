import type { createLease, LeaseAnswer, LeaseRequest } from '../api/leases.ts';
import type { getKeyset } from '../api/keys.ts';
import { ServiceError } from '../base/errors.ts';
import { ownMachineHash } from '../gate/machine-id.ts';
import { importKeys } from '../gate/machine-trust.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { TrustedKeys } from '../lease/keys.ts';
import type { LeaseReason } from '../lease/reasons.ts';
import { verifyTrust, type HeldTrust, type TrustOptions } from '../lease/trust.ts';
import { verifyLease } from '../lease/verify.ts';
import { pinRemedy } from '../gate/license-files.ts';
import { ANSWER_TIMEOUT_MS, createClient, type Client, type ClientOptions } from './client.ts';
import { refuseInsecure } from './insecure-http.ts';
import type { DeviceKey } from './device-key.ts';
import { makeDeviceProof } from './device-proof.ts';
import { judgeKeyset, type JudgedKeyset } from './keyset.ts';

export interface DeviceClientOptions extends Omit<ClientOptions, 'authorize' | 'largestAnswer'> {
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  /** Allows plain http to another host. */
  readonly insecure?: boolean | undefined;
  /** `machineHash` of this machine; `ownMachineHash` by default. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
}

/** Well above the size of leases and keysets, in bytes. */
const LARGEST_ANSWER = 1024 * 1024;

/**
 * Signs each request with the key of this device, and sends the hash of the machine id to a server
 * whose plan needs it. All requests together may take `timeoutMs`.
 *
 * @throws ServiceError `usage`, reason `insecure_http`
 */
export function connectAsDevice(
  {
    clock,
    insecure,
    timeoutMs = ANSWER_TIMEOUT_MS,
    signal,
    machineHash = ownMachineHash,
    ...options
  }: DeviceClientOptions,
  key: DeviceKey,
): Client {
  refuseInsecure(options.url, insecure);
  const timeout = AbortSignal.timeout(timeoutMs);
  const client = createClient({
    ...options,
    timeoutMs,
    largestAnswer: LARGEST_ANSWER,
    signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
    authorize: (request, nonce) => `DeviceProof ${makeDeviceProof(key, request, clock(), nonce)}`,
  });
  return { ...client, call: callWithMachine(client, machineHash) };
}

/**
 * Sends a request again with the hash of the machine id if the server asks for it. The first request
 * has no hash, because earlier servers reject that member and most plans do not need it.
 */
function callWithMachine(
  client: Client,
  machineHash: () => Promise<string | undefined>,
): Client['call'] {
  const send: (method: string, path: string, request: object) => Promise<never> = client.call;
  return async (method, path, request) => {
    try {
      return await send(method, path, request);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.reason !== 'machine_id_required') throw error;
      const machine_hash = await machineHash();
      if (machine_hash === undefined) throw noMachineId(error);
      const { body, ...rest } = request as { readonly body?: object };
      return send(method, path, { ...rest, body: { ...body, machine_hash } });
    }
  };
}

function noMachineId(cause: ServiceError): ServiceError {
  return new ServiceError(
    cause.code,
    'the license of this installation is bound to a machine, and the id of this machine cannot be read',
    {
      reason: 'no_machine_id',
      remedy:
        'On Linux, check that /etc/machine-id contains an id (`systemd-machine-id-setup` creates one). Containers need a plan that does not bind leases to machines: ask the issuer.',
      cause,
    },
  );
}

/**
 * Fetches the published keys, which are not trusted yet: see `judgeKeyset`.
 * @throws ServiceError of the server
 */
export async function fetchKeyset(server: Client): Promise<unknown> {
  return server.call<typeof getKeyset>('get', '/.well-known/license-keys.json', {});
}

/**
 * Decides whether this machine may trust keys that the server publishes.
 *
 * @throws ServiceError `invalid_data` with a `LeaseReason` for keys that it must not trust.
 */
export function requireTrusted(document: unknown, options: TrustOptions): JudgedKeyset {
  const judged = judgeKeyset(document, options);
  if (judged.ok) return judged;
  if (!isUntrusted(judged.reason)) throw unusable('keyset', judged);
  throw new ServiceError(
    'invalid_data',
    `the keys of the server are not trusted: ${judged.detail}`,
    { reason: judged.reason, remedy: untrustedRemedy(judged.reason, options) },
  );
}

/**
 * Returns the trust in keys that a person named with --keyset.
 *
 * @param text a published keyset, a JWK set, a JWK, or a key in PEM.
 * @throws ServiceError `invalid_data` with a `LeaseReason`
 */
export function namedTrust(text: string, pin: string | undefined, now: number): HeldTrust {
  const imported = importKeys(text);
  const trust =
    imported.ok && text.includes('"roots"') ? verifyTrust(text, { pin, now }) : imported;
  if (trust.ok) return trust;
  throw new ServiceError('invalid_data', `the given keys cannot be used: ${trust.detail}`, {
    reason: trust.reason,
    remedy:
      'Pass the keyset that the server publishes at /.well-known/license-keys.json, or one key in PEM.',
  });
}

function untrustedRemedy(reason: LeaseReason, { pin, held }: TrustOptions): string {
  if (pin !== undefined && ROOT_REASONS.has(reason)) {
    return `No file was changed. ${pinRemedy(pin)}`;
  }
  const unchanged =
    held === undefined
      ? 'No file was changed.'
      : 'No file was changed, and the lease of this machine stays in force.';
  if (reason === 'keyset_expired') {
    return `${unchanged} Ask the issuer to sign its keyset again.`;
  }
  if (reason === 'keyset_rollback' || reason === 'root_rollback') {
    return `${unchanged} The server may have been restored from a backup, or someone may be impersonating it. Ask the issuer to publish its newest keyset again.`;
  }
  return `${unchanged} This may be a different server, or someone may be impersonating it. If the issuer confirms the change, enroll again with a code that carries the new fingerprint, or name the new keys with --keyset FILE.`;
}

/** Reasons of keys that do not descend from the root that a pin requires. */
export const ROOT_REASONS: ReadonlySet<LeaseReason> = new Set(['other_root', 'not_vouched_for']);

function isUntrusted(reason: LeaseReason): boolean {
  return UNTRUSTED_REASONS.has(reason);
}

const UNTRUSTED_REASONS: ReadonlySet<LeaseReason> = new Set([
  'not_vouched_for',
  'other_root',
  'root_rollback',
  'keyset_rollback',
  'keyset_expired',
  'other_issuer',
]);

/** A lease from the server, not verified yet. */
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
  // A response without a lease becomes `null`, which the verification rejects.
  return { text: JSON.stringify(lease), limits, warnings };
}

/** Claims that the requested lease must have; undefined accepts any value. */
export type Asked = Pick<LeaseClaims, 'renewal_id' | 'device_thumbprint'> & {
  readonly deployment_id?: string | undefined;
  readonly issuer?: string | undefined;
};

const MISMATCHES = {
  renewal_id: 'other_lease',
  device_thumbprint: 'other_lease',
  deployment_id: 'other_installation',
  issuer: 'other_issuer',
} as const satisfies Record<keyof Asked, string>;

/** Names of these claims in messages. */
const MEMBERS: Readonly<Record<keyof Asked, string>> = {
  renewal_id: 'renewal_id',
  device_thumbprint: 'device',
  deployment_id: 'installation',
  issuer: 'issuer',
};

/** @throws ServiceError `invalid_data` for a lease that does not verify or was not requested */
export function checkLease(text: string, keys: TrustedKeys, asked: Asked): LeaseClaims {
  const result = verifyLease(text, keys);
  if (!result.ok) throw unusable('lease', result);
  const { claims } = result;
  for (const [name, reason] of Object.entries(MISMATCHES) as [keyof Asked, string][]) {
    if (asked[name] === undefined || claims[name] === asked[name]) continue;
    throw unusable('lease', {
      reason,
      detail: `its ${MEMBERS[name]} is ${claims[name]}, not ${asked[name]}`,
    });
  }
  return claims;
}

/** Whether the lease belongs to another installation or issuer, so that a retry cannot help. */
function isOfOther(reason: string): boolean {
  return reason === MISMATCHES.deployment_id || reason === MISMATCHES.issuer;
}

export function unusable(
  what: 'keyset' | 'lease',
  { reason, detail }: { readonly reason: string; readonly detail: string },
): ServiceError {
  return new ServiceError('invalid_data', `the ${what} from the server cannot be used: ${detail}`, {
    reason,
    remedy: isOfOther(reason)
      ? 'No file was changed. Check that the key and the license files here belong together. If they were copied from different machines, put back those of this machine, or enroll it again with `service-local license enroll` and a new code.'
      : 'No file was changed. Try again; if it fails again, ask the operator of the server.',
  });
}
