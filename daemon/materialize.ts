import { holdLock, type Lock } from '../src/client/lock.ts';
import { storeKeyset, storeLease } from '../src/client/lease-store.ts';
import { ServiceError } from '../src/errors.ts';
import {
  byWorth,
  importKeys,
  readLicense,
  statusOf,
  type HeldLease,
  type License,
} from '../src/gate/license.ts';
import type { LeaseClaims } from '../src/lease/claims.ts';
import type { TrustedKeys } from '../src/lease/keys.ts';
import type { Refused } from '../src/lease/refusal.ts';
import type { LeaseStatus } from '../src/lease/status.ts';
import { verifyLease } from '../src/lease/verify.ts';
import type { LicenseFiles } from '../src/license-files.ts';
import { store } from './renewal.ts';

const LOCK_WAIT_MS = 30_000;

const LEASE = 'SERVICE_LICENSE_LEASE';
const KEYS = 'SERVICE_LICENSE_PUBLIC_KEY';

/** What became of a value: `kept` is the file that is there, because it is better. */
export type Outcome = 'written' | 'same' | 'kept' | 'not_given';

export interface Materialized {
  readonly lease: Outcome;
  readonly keyset: Outcome;
  /** The lease that counts now; undefined when there is none. */
  readonly held: { readonly claims: LeaseClaims; readonly status: LeaseStatus } | undefined;
}

/**
 * Writes the lease and the keys that a container was started with to the license files. Containers
 * are started again with the values of long ago, so what is better in the files stays; and the values
 * are verified before anything is touched.
 *
 * @param now milliseconds since the Unix epoch.
 * @throws ServiceError `usage` when there are no values, `invalid_data` with a `LeaseReason` for one
 * that is not good, `conflict` while another process changes the license files;
 * `output_not_writable`.
 */
export async function materialize(
  files: LicenseFiles,
  env: NodeJS.ProcessEnv,
  now: number,
): Promise<Materialized> {
  const values = { lease: plain(env[LEASE]), keys: plain(env[KEYS]) };
  if (values.lease === undefined && values.keys === undefined) {
    throw new ServiceError('usage', `neither ${LEASE} nor ${KEYS} has a value`, {
      remedy: 'Have both injected into the environment of the container, and run it again.',
    });
  }
  const lock = await lockOf(files);
  try {
    const license = await readLicense(files, now);
    const given = keysOf(values.keys);
    const outcomes =
      values.lease === undefined
        ? { lease: 'not_given' as const, keyset: await putKeys(files, given!, license, now) }
        : await putLease(files, values.lease, given, license, now);
    const { leases, running } = await readLicense(files, now);
    const [held] = leases;
    const status = held && statusOf(held, now, running);
    return { ...outcomes, held: held && { claims: held.claims, status: status! } };
  } finally {
    lock?.release();
  }
}

/** Variables hold text, or, because not all tools keep line ends in them, base64 of it. */
function plain(value: string | undefined): string | undefined {
  const text = value?.trim() ?? '';
  if (text === '') return undefined;
  return /^(\{|-----BEGIN )/.test(text) ? text : Buffer.from(text, 'base64').toString();
}

/** Without a home to write to, nobody renews: then there is nobody to wait for. */
async function lockOf({ lock }: LicenseFiles): Promise<Lock | undefined> {
  try {
    return await holdLock(lock, LOCK_WAIT_MS);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'output_not_writable') return undefined;
    throw error;
  }
}

interface Given {
  readonly text: string;
  readonly keys: TrustedKeys;
}

function keysOf(text: string | undefined): Given | undefined {
  if (text === undefined) return undefined;
  const imported = importKeys(text);
  if (!imported.ok) throw refused(KEYS, imported);
  return { text, keys: imported.keys };
}

async function putLease(
  files: LicenseFiles,
  text: string,
  given: Given | undefined,
  { keyset, leases, running }: License,
  now: number,
): Promise<Pick<Materialized, 'lease' | 'keyset'>> {
  const trusted = given ?? keyset;
  if (!('keys' in trusted)) throw refused(LEASE, trusted);
  const found = verifyLease(text, trusted.keys);
  if (!found.ok) throw refused(LEASE, found);
  const lease: HeldLease = { path: files.lease, text, claims: found.claims };
  const heldKeys = keyset.ok ? keyset.keys : undefined;
  const isKnown = given !== undefined && hasAll(heldKeys, given.keys);
  const [held] = leases;
  const isThere = held?.path === files.lease && held.claims.lease_id === lease.claims.lease_id;
  if (isThere || (held !== undefined && byWorth(now, running)(held, lease) < 0)) {
    return {
      lease: isThere ? 'same' : 'kept',
      keyset: given === undefined ? 'not_given' : isKnown ? 'same' : 'kept',
    };
  }
  if (given === undefined || isKnown) {
    await storeLease(files.lease, text);
    return { lease: 'written', keyset: given === undefined ? 'not_given' : 'same' };
  }
  await store(files, lease, given, heldKeys);
  return { lease: 'written', keyset: 'written' };
}

async function putKeys(
  files: LicenseFiles,
  given: Given,
  { keyset, leases, running }: License,
  now: number,
): Promise<Outcome> {
  if (hasAll(keyset.ok ? keyset.keys : undefined, given.keys)) return 'same';
  const [held] = leases;
  const isNeeded = held !== undefined && statusOf(held, now, running).state !== 'expired';
  if (isNeeded && !verifyLease(held.text, given.keys).ok) return 'kept';
  await storeKeyset(files.keyset, given.text);
  return 'written';
}

function hasAll(keys: TrustedKeys | undefined, others: TrustedKeys): boolean {
  return keys !== undefined && [...others.keys()].every((id) => keys.has(id));
}

function refused(variable: string, { reason, detail }: Omit<Refused, 'ok'>): ServiceError {
  return new ServiceError('invalid_data', `the value of ${variable} is refused: ${detail}`, {
    reason,
    remedy:
      'The license files were not changed. Inject the value as it was issued, or base64 of it.',
  });
}
