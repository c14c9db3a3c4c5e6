import { ServiceError } from '../../base/errors.ts';
import { BEFORE_ANY_EXPIRY } from '../../gate/anchor.ts';
import {
  importKeys,
  judgeTrust,
  type JudgedTrust,
  type MachineTrust,
} from '../../gate/machine-trust.ts';
import { LEASE_REASONS, type LeaseReason } from '../../lease/reasons.ts';
import { leaseStatus } from '../../lease/status.ts';
import { parseTime } from '../../lease/time.ts';
import { verifyLease } from '../../lease/verify.ts';
import type { Install } from './cloud-file.ts';
import { factsOf, type LeaseFacts, type SeedManifest } from './manifest.ts';
import type { SecretStore, SecretVersion } from './secret-store.ts';

/**
 * | status             | meaning                                                                    |
 * |--------------------|----------------------------------------------------------------------------|
 * | `ok`               | valid; `reason` is set if the clock of this machine must be wrong          |
 * | `due`              | valid, but should be renewed now                                           |
 * | `grace`, `expired` | the lease was not renewed in time; `expired` also applies to signed keysets |
 * | `missing`          | the secret does not exist or has no value                                  |
 * | `denied`           | the caller is not allowed to read the secret                               |
 * | `malformed`        | not a keyset or not a lease; `reason` says why                             |
 * | `unverified`       | these keys did not sign the lease, or the pinned root not the keyset       |
 * | `other_deployment` | the lease belongs to another installation                                  |
 * | `older`            | a lease that was written later is no longer the current value              |
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
  readonly message: string | null;
  readonly version_id: string | null;
}

export interface LeaseVersion {
  /** When this version became current, ms since the epoch. */
  readonly since: number;
  /** Undefined if the lease does not verify. */
  readonly facts: LeaseFacts | undefined;
}

/** Why the keys in the secret are trusted. */
export type SecretTrust = Pick<MachineTrust, 'by' | 'pin' | 'fingerprint'>;

/** Result of checking the two secrets of an installation. Contains no secret values. */
export interface Checked {
  /** Undefined if the keyset is missing or not trusted. */
  readonly trust: SecretTrust | undefined;
  readonly public_key: CheckedSecret;
  readonly lease: CheckedSecret;
  /** Undefined unless the lease verifies and belongs to the installation. */
  readonly facts: LeaseFacts | undefined;
  /** When the lease became current, ms since the epoch; undefined if unknown. */
  readonly since: number | undefined;
  /** The previous lease; undefined if the store does not keep it. */
  readonly previous: LeaseVersion | undefined;
}

/**
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `cloud_unavailable`
 */
export async function checkSecrets(
  { secrets, license_deployment_id, pin }: Install,
  store: SecretStore,
  now: number,
  manifest?: SeedManifest,
): Promise<Checked> {
  const keyset = await read(store, 'current', secrets.public_key);
  const lease = await read(store, 'current', secrets.lease);
  const { trusted, ...fault } =
    keyset.version === undefined ? {} : trustIn(keyset.version.value, pin, now);
  const public_key =
    keyset.version === undefined
      ? keyset.absent
      : checkedSecret(secrets.public_key, keyset.version, fault.status ?? 'ok', fault.reason);
  const trust = trusted && { by: trusted.by, pin, fingerprint: trusted.fingerprint };
  const known = { public_key, trust };
  const nothing = { ...known, facts: undefined, since: undefined, previous: undefined };
  if (lease.version === undefined) return { ...nothing, lease: lease.absent };
  const checkedLease = (
    status: CheckedSecret['status'],
    reason?: LeaseReason | null,
  ): CheckedSecret => checkedSecret(secrets.lease, lease.version, status, reason);
  if (trusted === undefined)
    return { ...nothing, lease: checkedLease('unverified', 'unknown_key') };
  const claimsOf = ({ value }: SecretVersion) => {
    const verified = verifyLease(value, trusted.keys);
    const isOurs = verified.ok && verified.claims.deployment_id === license_deployment_id;
    return { verified, ours: isOurs ? verified.claims : undefined };
  };
  const { version: before } = await read(store, 'previous', secrets.lease);
  const former = before && claimsOf(before).ours;
  const previous = before && {
    since: before.created_at,
    facts: former && factsOf(former),
  };
  // Restoring an earlier version keeps its creation time, so the time of the change is unknown.
  const isSetBack = previous !== undefined && previous.since > lease.version.created_at;
  const since = isSetBack ? undefined : lease.version.created_at;
  const { verified, ours } = claimsOf(lease.version);
  if (ours === undefined) {
    const status = verified.ok
      ? 'other_deployment'
      : UNVERIFIED.has(verified.reason)
        ? 'unverified'
        : 'malformed';
    const reason = verified.ok ? undefined : verified.reason;
    return { ...known, lease: checkedLease(status, reason), facts: undefined, since, previous };
  }
  const facts = factsOf(ours);
  const { reason } = leaseStatus(ours, now);
  const isOlder =
    isSetBack ||
    (manifest !== undefined && parseTime(facts.issued_at)! < parseTime(manifest.issued_at)!);
  const status = isOlder
    ? 'older'
    : reason === 'expired'
      ? 'expired'
      : reason === 'in_grace'
        ? 'grace'
        : now >= parseTime(facts.due_at)!
          ? 'due'
          : 'ok';
  return { ...known, lease: checkedLease(status, reason), facts, since, previous };
}

interface TrustIn {
  readonly trusted?: MachineTrust;
  readonly status?: CheckedSecret['status'];
  readonly reason?: LeaseReason;
}

/**
 * Verifies the keyset as a newly started gate does, which holds no other keys. Running gates still
 * accept leases under an expired keyset, so its keys are returned along with the fault.
 */
function trustIn(text: string, pin: string | undefined, now: number): TrustIn {
  const keyset = { path: 'the keyset', read: { ok: true, text } as const };
  const judge = (at: number): JudgedTrust =>
    judgeTrust({ keyset, root: undefined, pin, leases: [] }, at, undefined);
  const judged = judge(now);
  if (judged.keyset.ok) return { trusted: judged.trusted! };
  const { reason } = judged.keyset;
  if (reason !== 'keyset_expired') {
    return { status: importKeys(text).ok ? 'unverified' : 'malformed', reason };
  }
  const { trusted } = judge(BEFORE_ANY_EXPIRY);
  return { ...(trusted && { trusted }), status: 'expired', reason };
}

/** Whether a container that starts with these secrets is licensed. */
export function isUsable({ public_key, lease, facts }: Checked): boolean {
  return public_key.status === 'ok' && facts !== undefined && lease.status !== 'expired';
}

/** The error to report if a secret is unusable; undefined if both are valid, even if renewal is due. */
export function checkFailure({ public_key, lease }: Checked): ServiceError | undefined {
  const bad = [public_key, lease].filter(({ status }) => status !== 'ok' && status !== 'due');
  if (bad.length === 0) return undefined;
  const text = bad.map(({ name, status }) => `${name} is ${status}`).join(', ');
  const [{ reason }] = bad as [CheckedSecret];
  return new ServiceError('license_invalid', text, {
    ...(reason !== null && { reason }),
    remedy: remedyOf(public_key),
  });
}

function remedyOf({ status, reason }: CheckedSecret): string {
  const write = 'Run `service-local cloud renew` for this customer and environment.';
  if (status === 'expired') {
    return `The issuer must renew the signed keyset with \`service-local identity root sign-keyset\`. ${write}`;
  }
  return reason === 'not_vouched_for' || reason === 'other_root'
    ? `Compare SERVICE_LICENSE_ROOT with the fingerprint that the issuer gives you (\`service-local identity root show\`). ${write}`
    : write;
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
  due: 'The lease is valid, but should be renewed now.',
  missing: 'The secret does not exist or has no value.',
  denied: 'You are not allowed to read this secret.',
  other_deployment: 'The lease belongs to another installation.',
  older: 'A lease that was written later is no longer the current value.',
};

/** Describes a fault by its reason only, because the detail can quote the secret value. */
function checkedSecret(
  name: string,
  version: SecretVersion | undefined,
  status: CheckedSecret['status'],
  reason?: LeaseReason | null,
): CheckedSecret {
  const message = MESSAGES[status] ?? (reason ? LEASE_REASONS[reason] : null);
  return { name, status, reason: reason ?? null, message, version_id: version?.version_id ?? null };
}

type Read =
  | { readonly version: SecretVersion; readonly absent?: never }
  | { readonly version?: never; readonly absent: CheckedSecret };

async function read(
  store: SecretStore,
  which: 'current' | 'previous',
  name: string,
): Promise<Read> {
  try {
    const version = await store[which](name);
    return version ? { version } : { absent: checkedSecret(name, undefined, 'missing') };
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === 'not_allowed')) throw error;
    return { absent: checkedSecret(name, undefined, 'denied') };
  }
}
