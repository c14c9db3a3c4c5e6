import { judgeKeysetText } from '../src/client/keyset.ts';
import { holdLock, type Lock } from '../src/base/file-lock.ts';
import { storeKeyset, storeLease, storeLicense } from '../src/client/lease-store.ts';
import { ServiceError } from '../src/base/errors.ts';
import {
  byWorth,
  readLicenseTexts,
  statusOf,
  verifyLicense,
  type HeldLease,
  type License,
  type LicenseTexts,
} from '../src/gate/license.ts';
import { importKeys } from '../src/gate/machine-trust.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import type { TrustedKeys } from '../src/lease/keys.ts';
import type { Refused } from '../src/lease/refusal.ts';
import { verifyLease } from '../src/lease/verify.ts';
import type { LicenseFiles } from '../src/gate/license-files.ts';
import { acceptedOf } from './accepted.ts';
import {
  splitLeaseFile,
  refuseOtherInstallation,
  refuseOtherOwner,
  describeRefusal,
} from './offline.ts';

const LOCK_WAIT_MS = 30_000;

const LEASE = 'SERVICE_LICENSE_LEASE';
const KEYS = 'SERVICE_LICENSE_PUBLIC_KEY';

/** Result for a value; `kept` means that the file stays because it is better. */
export type Outcome = 'written' | 'same' | 'kept' | 'not_given';

export interface Materialized {
  readonly lease: Outcome;
  readonly keyset: Outcome;
}

/**
 * Writes lease and keys from the environment of a container to the license files. The values are
 * verified first. Because containers restart with old values, better files stay. Keys in the same
 * document as the lease count as in `verifyImport`.
 *
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `usage` without values, `invalid_data` with a `LeaseReason` for a refused
 * value, `conflict` for a lease of another installation than one that works, and while
 * another process changes the license files;
 * `output_not_writable`.
 */
export async function materialize(
  files: LicenseFiles,
  env: NodeJS.ProcessEnv,
  now: number,
): Promise<Materialized> {
  const [lease, keys] = [decoded(env[LEASE]), decoded(env[KEYS])];
  const parts = splitLeaseFile(lease ?? '');
  const values = {
    lease: parts?.lease ?? lease,
    enclosed: parts?.enclosed,
    keys: splitLeaseFile(keys ?? '')?.enclosed ?? keys,
  };
  if (values.lease === undefined && values.keys === undefined) {
    throw new ServiceError('usage', `neither ${LEASE} nor ${KEYS} is set`, {
      remedy: 'Set both in the environment of the container, and run the command again.',
    });
  }
  const lock = await holdLicenseLock(files);
  try {
    const found = await readFound(files, values, now);
    return values.lease === undefined
      ? { lease: 'not_given', keyset: await putKeys(files, found, now) }
      : await putLease(files, { ...values, lease: values.lease }, found, now);
  } finally {
    lock?.release();
  }
}

/** Decodes base64, because some tools do not preserve line ends in variables. */
function decoded(value: string | undefined): string | undefined {
  const text = value?.trim() ?? '';
  if (text === '') return undefined;
  return /^(\{|-----BEGIN )/.test(text) ? text : Buffer.from(text, 'base64').toString();
}

/** Returns undefined if the home is read-only, because then no process renews there. */
async function holdLicenseLock({ lock }: LicenseFiles): Promise<Lock | undefined> {
  try {
    return await holdLock(lock, LOCK_WAIT_MS);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'output_not_writable') return undefined;
    throw error;
  }
}

interface Values {
  readonly lease: string | undefined;
  /** Keys in the same document as the lease. */
  readonly enclosed: string | undefined;
  readonly keys: string | undefined;
}

interface Given {
  readonly text: string;
  readonly keys: TrustedKeys;
}

/** The files and values before anything is written. */
interface Found {
  readonly given: Given | undefined;
  /** Why the given keys are refused, if the files hold a lease that may be better. */
  readonly outdated: Omit<Refused, 'ok'> | undefined;
  readonly isKnown: boolean;
  readonly license: License;
  /** The best lease in the files, verified by their keys or by the given ones. */
  readonly held: HeldLease | undefined;
  /** Whether `held` verifies by the keys in the files, and by the given ones. */
  readonly verifies: { readonly own: boolean; readonly given: boolean };
}

async function readFound(files: LicenseFiles, values: Values, now: number): Promise<Found> {
  const texts = await readLicenseTexts(files);
  const license = verifyLicense(texts, now);
  const { keys, enclosed, lease } = values;
  const hasNone = license.trusted === undefined && isMissing(license.keyset);
  const text = keys ?? (hasNone ? enclosed : undefined);
  const byGiven = text === undefined ? undefined : withGiven(texts, { text, lease }, now);
  const fault = byGiven?.keyset.ok === false ? byGiven.keyset : undefined;
  const mayBeOutdated = license.leases.length > 0 && importKeys(text ?? '').ok;
  if (fault !== undefined && !mayBeOutdated) {
    throw refusalError(keys === undefined ? LEASE : KEYS, fault);
  }
  const taken = fault === undefined ? byGiven : undefined;
  const given = text && taken?.trusted ? { text, keys: taken.trusted.keys } : undefined;
  const others = (taken?.leases ?? []).filter(({ path }) => path !== INJECTED);
  const [held] = [...license.leases, ...others].sort(byWorth(now, license.running));
  const isIn = (all: readonly HeldLease[]): boolean => all.some((one) => one.text === held?.text);
  return {
    given,
    outdated: fault,
    isKnown: given !== undefined && license.keyset.ok && hasAll(license.keyset.keys, given.keys),
    license,
    held,
    verifies: { own: isIn(license.leases), given: isIn(others) },
  };
}

/** Stands for the path of the injected lease. */
const INJECTED = '';

/** Returns the license as if the keyset file held the given keys. */
function withGiven(
  texts: LicenseTexts,
  { text, lease }: { readonly text: string; readonly lease: string | undefined },
  now: number,
): License {
  const keyset = { ...texts.keyset, read: { ok: true, text } as const };
  const path = INJECTED;
  const injected = lease === undefined ? [] : [{ path, read: { ok: true, text: lease } as const }];
  return verifyLicense({ ...texts, keyset, leases: [...texts.leases, ...injected] }, now);
}

function isMissing(keyset: License['keyset']): boolean {
  return !keyset.ok && keyset.reason === 'unknown_key';
}

async function putLease(
  files: LicenseFiles,
  { lease: text, enclosed, keys }: Values & { readonly lease: string },
  found: Found,
  now: number,
): Promise<Pick<Materialized, 'lease' | 'keyset'>> {
  const { given, outdated: fault, isKnown, license, held, verifies } = found;
  const trusted = given ?? license.trusted;
  if (trusted === undefined) throw refusalError(LEASE, license.keyset as Refused);
  const isWorse = (lease: HeldLease): boolean =>
    held !== undefined && byWorth(now, license.running)(held, lease) < 0;
  const leaseBy = (trustedKeys: TrustedKeys): HeldLease | Refused => {
    const verified = verifyLease(text, trustedKeys);
    return verified.ok ? { path: files.lease, text, claims: verified.claims } : verified;
  };
  const lease = leaseBy(trusted.keys);
  if ('reason' in lease) {
    // A lease from before a change of keys need not be trusted to prove that it is worse.
    const own = importKeys((fault && keys) ?? enclosed ?? '');
    const outdated = own.ok ? leaseBy(own.keys) : own;
    if (!('reason' in outdated) && isWorse(outdated)) return { lease: 'kept', keyset: 'kept' };
    throw fault === undefined
      ? refusalError(LEASE, { ...lease, detail: describeRefusal(lease) })
      : refusalError(KEYS, fault);
  }
  refuseOtherOwner(license.owner, lease.claims);
  refuseOtherInstallation(held, lease, now, license.running);
  const withoutKeys = fault === undefined ? 'not_given' : 'kept';
  const isThere = held?.path === files.lease && held.claims.lease_id === lease.claims.lease_id;
  if (isThere || isWorse(lease)) {
    const outcome = isThere ? 'same' : 'kept';
    if (given === undefined) return { lease: outcome, keyset: withoutKeys };
    if (isKnown) return { lease: outcome, keyset: 'same' };
    if (verifies.own) return { lease: outcome, keyset: 'kept' };
    await storeKeyset(files.keyset, given.text);
    return { lease: outcome, keyset: 'written' };
  }
  if (given === undefined || isKnown) {
    await storeLease(files.lease, text);
    return { lease: 'written', keyset: given === undefined ? withoutKeys : 'same' };
  }
  const root = anchorWith(files, given, found, lease.claims, now);
  await storeLicense(files, { lease: text, keyset: given.text, root }, held?.path);
  return { lease: 'written', keyset: 'written' };
}

/** The next trust anchor; undefined if this machine has none. */
function anchorWith(
  { pin }: LicenseFiles,
  { text }: Given,
  { license: { anchor, trusted } }: Found,
  claims: LeaseClaims,
  now: number,
): string | undefined {
  if (anchor.kind !== 'held') return undefined;
  const judged = judgeKeysetText(text, { pin, held: trusted, now });
  return judged.ok ? acceptedOf(claims, judged.trust, judged.text).anchor : undefined;
}

/** Stores given keys without a lease, unless a working lease would no longer verify. */
async function putKeys(
  files: LicenseFiles,
  { given, outdated, isKnown, license, held, verifies }: Found,
  now: number,
): Promise<Outcome> {
  if (isKnown) return 'same';
  const works = held !== undefined && statusOf(held, now, license.running).state !== 'expired';
  if (works && !verifies.given) return 'kept';
  if (given === undefined) throw refusalError(KEYS, outdated!);
  await storeKeyset(files.keyset, given.text);
  return 'written';
}

function hasAll(keys: TrustedKeys, others: TrustedKeys): boolean {
  return [...others.keys()].every((id) => keys.has(id));
}

function refusalError(variable: string, { reason, detail }: Omit<Refused, 'ok'>): ServiceError {
  return new ServiceError('invalid_data', `the value of ${variable} is refused: ${detail}`, {
    reason,
    remedy:
      reason === 'unknown_key'
        ? `The license files were not changed. Set ${KEYS} to the keys of the issuer of the lease.`
        : 'The license files were not changed. Set the variable to the content of the file as it was issued, or to its base64 encoding.',
  });
}
