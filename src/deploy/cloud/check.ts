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
 * | status             |                                                                         |
 * |--------------------|-------------------------------------------------------------------------|
 * | `ok`               | with a `reason` where this machine's clock cannot be right              |
 * | `due`              | works, and is to be renewed now                                         |
 * | `grace`, `expired` | was not renewed in time; `expired` also a signed keyset                 |
 * | `missing`          | there is no such secret, or it has no value                             |
 * | `denied`           | whoever asks may not read it                                            |
 * | `malformed`        | is no keyset or no lease; `reason` is a `LeaseReason`                  |
 * | `unverified`       | a lease not signed by these keys, or a keyset not by the pinned root   |
 * | `other_deployment` | a lease of another installation                                           |
 * | `older`            | what was written later is not the current value any more                |
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

/** When a version of the lease became the current one (ms since the epoch), and what it is. */
export interface LeaseVersion {
  readonly since: number;
  /** Undefined where it does not verify. */
  readonly facts: LeaseFacts | undefined;
}

/** Why the keys of the secret are trusted. */
export type SecretTrust = Pick<MachineTrust, 'by' | 'pin' | 'fingerprint'>;

/** What the secrets of an install are worth, without their values. */
export interface Checked {
  /** Undefined where the keyset is missing or refused. */
  readonly trust: SecretTrust | undefined;
  readonly public_key: CheckedSecret;
  readonly lease: CheckedSecret;
  /** Of the lease, where it verifies and is of that installation. */
  readonly facts: LeaseFacts | undefined;
  /** When the lease became the current one (ms since the epoch), where that is known. */
  readonly since: number | undefined;
  /** The one before, where the store keeps it. */
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
      : told(secrets.public_key, keyset.version, fault.status ?? 'ok', fault.reason);
  const trust = trusted && { by: trusted.by, pin, fingerprint: trusted.fingerprint };
  const known = { public_key, trust };
  const nothing = { ...known, facts: undefined, since: undefined, previous: undefined };
  if (lease.version === undefined) return { ...nothing, lease: lease.absent };
  const tell = (status: CheckedSecret['status'], reason?: LeaseReason | null): CheckedSecret =>
    told(secrets.lease, lease.version, status, reason);
  if (trusted === undefined) return { ...nothing, lease: tell('unverified', 'unknown_key') };
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
  // What was made the current one again is no newer than it was, and nobody says since when it is.
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
    return { ...known, lease: tell(status, reason), facts: undefined, since, previous };
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
  return { ...known, lease: tell(status, reason), facts, since, previous };
}

interface TrustIn {
  readonly trusted?: MachineTrust;
  readonly status?: CheckedSecret['status'];
  readonly reason?: LeaseReason;
}

/**
 * Verifies the keyset as a gate does that starts with it and holds no other keys. Under an expired
 * one, running gates still accept leases, so its keys are returned beside the fault.
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

/** Whether what is started with it has a license. */
export function isUsable({ public_key, lease, facts }: Checked): boolean {
  return public_key.status === 'ok' && facts !== undefined && lease.status !== 'expired';
}

/** Why the secrets are not as they should be; undefined when they are, or are due for renewal. */
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
  const write = 'Write them with `service-local cloud renew`, for this customer and environment.';
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
  due: 'It works, and is to be renewed now.',
  missing: 'There is no such secret, or it has no value.',
  denied: 'Whoever runs this may not read it.',
  other_deployment: 'It is the lease of another installation.',
  older: 'A later one was written, and is not the current one any more.',
};

/** What a value is like is told by the reason alone: a detail may quote it. */
function told(
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
    return version ? { version } : { absent: told(name, undefined, 'missing') };
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === 'not_allowed')) throw error;
    return { absent: told(name, undefined, 'denied') };
  }
}
