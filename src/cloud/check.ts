import { ServiceError } from '../errors.ts';
import { importKeys } from '../gate/license.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import type { TrustedKeys } from '../lease/keys.ts';
import { LEASE_REASONS, type LeaseReason } from '../lease/reasons.ts';
import { renewalMoment } from '../lease/schedule.ts';
import { leaseStatus } from '../lease/status.ts';
import { parseTime } from '../lease/time.ts';
import { verifyLease } from '../lease/verify.ts';
import type { Install } from './cloud-file.ts';
import type { SeedManifest } from './manifest.ts';
import type { SecretStore, SecretVersion } from './secret-store.ts';

/**
 * | status             |                                                                         |
 * |--------------------|-------------------------------------------------------------------------|
 * | `ok`               |                                                                         |
 * | `due`              | works, and is to be renewed now                                         |
 * | `grace`, `expired` | was not renewed in time                                                 |
 * | `missing`          | there is no such secret, or it has no value                             |
 * | `denied`           | whoever asks may not read it                                            |
 * | `malformed`        | is no key set or no lease; `reason` is a `LeaseReason`                  |
 * | `unverified`       | a lease, but not by these keys; `reason` is a `LeaseReason`             |
 * | `other_deployment` | a lease of another deployment                                           |
 * | `older`            | was issued before what the manifest says was written                    |
 */
export interface CheckedSecret {
  readonly name: string;
  readonly status:
    | 'ok'
    | 'due'
    | 'grace'
    | 'expired'
    | 'missing'
    | 'denied'
    | 'malformed'
    | 'unverified'
    | 'other_deployment'
    | 'older';
  readonly reason: LeaseReason | null;
  /** For people. */
  readonly message: string | null;
  readonly version_id: string | null;
}

/** What the secrets of an install are worth, without their values. */
export interface Checked {
  readonly public_key: CheckedSecret;
  readonly lease: CheckedSecret;
  /** Of the lease, where it verifies and is of that deployment. */
  readonly claims: LeaseClaims | undefined;
  /** When the lease became the current one: ms since the epoch. */
  readonly since: number | undefined;
  /** By which other versions can be verified. */
  readonly keys: TrustedKeys | undefined;
}

/**
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `cloud_unavailable`
 */
export async function checkSecrets(
  { secrets, license_deployment_id }: Install,
  store: SecretStore,
  now: number,
  manifest?: SeedManifest,
): Promise<Checked> {
  const [keyset, lease] = [await read(store, secrets.public_key), await read(store, secrets.lease)];
  const imported = keyset.version && importKeys(keyset.version.value);
  const public_key =
    imported === undefined
      ? keyset.absent!
      : imported.ok
        ? told(secrets.public_key, keyset.version, 'ok')
        : told(secrets.public_key, keyset.version, 'malformed', imported.reason);
  const keys = imported?.ok ? imported.keys : undefined;
  if (lease.version === undefined) {
    return { public_key, lease: lease.absent, claims: undefined, since: undefined, keys };
  }
  const tell = (status: CheckedSecret['status'], reason?: LeaseReason): CheckedSecret =>
    told(secrets.lease, lease.version, status, reason);
  const since = lease.version.created_at;
  const verified = keys && verifyLease(lease.version.value, keys);
  if (verified?.ok !== true) {
    const reason = verified?.reason ?? 'unknown_key';
    const status = UNVERIFIED.has(reason) ? 'unverified' : 'malformed';
    return { public_key, lease: tell(status, reason), claims: undefined, since, keys };
  }
  const { claims } = verified;
  if (claims.deployment_id !== license_deployment_id) {
    return { public_key, lease: tell('other_deployment'), claims: undefined, since, keys };
  }
  const { state, reason } = leaseStatus(claims, now);
  const status =
    manifest !== undefined && parseTime(claims.issued_at)! < parseTime(manifest.issued_at)!
      ? 'older'
      : state !== 'valid'
        ? state
        : now >= renewalMoment(claims)
          ? 'due'
          : 'ok';
  return { public_key, lease: tell(status, reason ?? undefined), claims, since, keys };
}

/** Whether what is started with it has a license. */
export function isUsable({
  public_key,
  lease,
  claims,
}: Pick<Checked, 'public_key' | 'lease' | 'claims'>): boolean {
  return public_key.status === 'ok' && claims !== undefined && lease.status !== 'expired';
}

/** Why the secrets are not as they should be; undefined when they are. */
export function checkFailure({ public_key, lease }: Checked): ServiceError | undefined {
  const bad = [public_key, lease].filter(({ status }) => status !== 'ok');
  if (bad.length === 0) return undefined;
  const text = bad.map(({ name, status }) => `${name} is ${status}`).join(', ');
  const [{ reason }] = bad as [CheckedSecret];
  return new ServiceError('license_invalid', text, {
    ...(reason !== null && { reason }),
    remedy: 'Write them with `service-local cloud seed`, or, where that is due, `cloud renew`.',
  });
}

const UNVERIFIED: ReadonlySet<LeaseReason> = new Set([
  'unknown_key',
  'signature_length',
  'signature_scalar',
  'signature_point',
  'bad_signature',
  'key_mismatch',
]);

const MESSAGES: Readonly<Partial<Record<CheckedSecret['status'], string>>> = {
  due: 'It works, and is to be renewed now.',
  missing: 'There is no such secret, or it has no value.',
  denied: 'Whoever runs this may not read it.',
  other_deployment: 'It is the lease of another deployment.',
  older: 'It was issued before what the manifest says was written.',
};

/** What a value is like is told by the reason alone: a detail may quote it. */
function told(
  name: string,
  version: SecretVersion | undefined,
  status: CheckedSecret['status'],
  reason?: LeaseReason,
): CheckedSecret {
  const message = MESSAGES[status] ?? (reason === undefined ? null : LEASE_REASONS[reason]);
  return { name, status, reason: reason ?? null, message, version_id: version?.version_id ?? null };
}

type Read =
  | { readonly version: SecretVersion; readonly absent?: never }
  | { readonly version?: never; readonly absent: CheckedSecret };

async function read(store: SecretStore, name: string): Promise<Read> {
  try {
    const version = await store.current(name);
    return version ? { version } : { absent: told(name, undefined, 'missing') };
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === 'not_allowed')) throw error;
    return { absent: told(name, undefined, 'denied') };
  }
}
