import { hash } from 'node:crypto';
import { lstat, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isTemporary } from '../base/atomic-file.ts';
import { isSystemError } from '../base/system-errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { isJsonObject } from '../lease/json.ts';
import { isRunningTime, knownTime, type RunningTime } from '../lease/known-time.ts';
import type { LeaseReason } from '../lease/reasons.ts';
import type { Refused } from '../lease/refusal.ts';
import { leaseStatus, type LeaseStatus } from '../lease/status.ts';
import { parseTime } from '../lease/time.ts';
import { verifyLease } from '../lease/verify.ts';
import type { LicenseFiles } from './license-files.ts';
import { judgeTrust, type JudgedTrust, type TrustMemory } from './machine-trust.ts';
import { readTextFile, type TextFile } from './text-file.ts';

export interface HeldLease {
  readonly path: string;
  readonly text: string;
  readonly claims: LeaseClaims;
}

/** A license file that is not accepted, and why. */
export interface RefusedFile {
  readonly path: string;
  readonly reason: LeaseReason;
  readonly detail: string;
}

export interface License extends JudgedTrust {
  /** All leases that verified, best first; the first one is in force. */
  readonly leases: readonly HeldLease[];
  /** The other files; if the lease file is among them, it comes first. */
  readonly refused: readonly RefusedFile[];
  /** Running time that the daemon counted; undefined without a record. */
  readonly running: RunningTime | undefined;
}

/**
 * The files of a license. Without `root`, the machine has no trust anchor; without `key`, it cannot
 * use a lease that is bound to a device.
 */
export type ReadFiles = Pick<LicenseFiles, 'lease' | 'keyset' | 'state'> &
  Partial<Pick<LicenseFiles, 'root' | 'pin' | 'key' | 'formerKey'>>;

/** Path of the second copy of the lease, for the case that the first is overwritten. */
export function backupOf(lease: string): string {
  return `${lease}.bak`;
}

/**
 * Reads and verifies the lease file, its backup, and temporary files that killed processes left. Follows
 * links, as secret stores use them. If the lease file holds a verified lease, leases of other
 * installations in the other files are ignored.
 *
 * @param now milliseconds since the Unix epoch, for the choice of the best lease.
 */
export async function readLicense(files: ReadFiles, now: number): Promise<License> {
  return verifyLicense(await readLicenseTexts(files), now);
}

/** The unverified content of the license files. */
export interface LicenseTexts {
  readonly keyset: TextFile;
  /** The trust anchor; undefined if `ReadFiles` has no `root`. */
  readonly root: TextFile | undefined;
  /** Fingerprint of the pinned root. */
  readonly pin: string | undefined;
  readonly leases: readonly TextFile[];
  readonly running: RunningTime | undefined;
  /** The last `newAnnouncement` of an anchor, from the daemon's state. */
  readonly announced: string | undefined;
  /** Hash of keyset, anchor and leases; equal digests lead to equal verdicts. */
  readonly digest: string;
}

/** Reads the files without the slow verification, see `verifyLicense`. */
export async function readLicenseTexts(files: ReadFiles): Promise<LicenseTexts> {
  const [keyset, root, { running, announced }, leases] = await Promise.all([
    readTextFile(files.keyset),
    files.root === undefined ? undefined : readTextFile(files.root),
    readDaemonState(files.state),
    candidatePaths(files.lease).then((paths) => Promise.all(paths.map(readTextFile))),
  ]);
  const digest = hash('sha256', JSON.stringify([keyset, root, leases]));
  return { keyset, root, pin: files.pin, leases, running, announced, digest };
}

/** Returns all files that are not accepted, lease files first. */
export function refusedFiles({ refused, keyset, trusted, refusedAnchor }: License): RefusedFile[] {
  const files = refused.filter(({ path }) => !path.endsWith('.tmp'));
  // Without trusted keys, every lease is already refused with the reason of the keyset.
  if (!keyset.ok && trusted !== undefined) {
    const { path, reason, detail } = keyset;
    files.push({ path, reason, detail });
  }
  if (refusedAnchor !== undefined) files.push(refusedAnchor);
  return files;
}

/** Results of earlier verifications, keyed by keys and lease. */
export type Verdicts = Map<string, ReturnType<typeof verifyLease>>;

export interface VerifyOptions {
  /** Results to reuse. Unused ones are removed. */
  readonly verdicts?: Verdicts;
  /** Takes precedence over the trust anchor on disk. */
  readonly memory?: TrustMemory | undefined;
}

export function verifyLicense(
  texts: LicenseTexts,
  now: number,
  { verdicts = new Map(), memory }: VerifyOptions = {},
): License {
  const { leases: leaseFiles, running } = texts;
  const judged = judgeTrust(texts, now, memory);
  const verify = verifierOf(judged, verdicts);
  const leases: HeldLease[] = [];
  const refused: RefusedFile[] = [];
  for (const [i, { path, read }] of leaseFiles.entries()) {
    if (!read.ok) {
      const { reason, detail } = read;
      if (reason !== 'missing' || i === 0) refused.push({ path, reason, detail });
      continue;
    }
    const found = verify(read.text);
    if (found.ok) leases.push({ path, text: read.text, claims: found.claims });
    else refused.push({ path, reason: found.reason, detail: found.detail });
  }
  const own = leases.find(({ path }) => path === leaseFiles[0]?.path)?.claims.deployment_id;
  const counting = leases.filter(({ claims }) => own === undefined || claims.deployment_id === own);
  return { ...judged, leases: counting.sort(byWorth(now, running)), refused, running };
}

/** Verifies leases by the trusted keys, each once, and checks their issuer and installation. */
function verifierOf(
  { keyset, trusted, owner }: JudgedTrust,
  verdicts: Verdicts,
): (text: string) => ReturnType<typeof verifyLease> {
  const before = new Map(verdicts);
  verdicts.clear();
  const ids = [...(trusted?.keys.keys() ?? [])].sort();
  return (text) => {
    if (trusted === undefined) return keyset as Refused;
    const id = hash('sha256', JSON.stringify([ids, text]));
    const found = verdicts.get(id) ?? before.get(id) ?? verifyLease(text, trusted.keys);
    verdicts.set(id, found);
    return found.ok ? (foreign(found.claims, owner) ?? found) : found;
  };
}

function foreign(
  { issuer, deployment_id }: LeaseClaims,
  owner: JudgedTrust['owner'],
): Refused | undefined {
  if (owner === undefined) return undefined;
  if (issuer !== owner.issuer) {
    const detail = `the lease is from the issuer ${issuer}, but this machine accepts leases from ${owner.issuer}`;
    return { ok: false, reason: 'other_issuer', detail };
  }
  if (deployment_id !== owner.installationId) {
    const detail = `the lease is for the installation ${deployment_id}, but this machine is ${owner.installationId}`;
    return { ok: false, reason: 'other_installation', detail };
  }
  return undefined;
}

/** Returns the status of a lease, taking the running time into account. */
export function statusOf(
  { claims }: Pick<HeldLease, 'claims'>,
  now: number,
  running: RunningTime | undefined,
): LeaseStatus {
  return leaseStatus(claims, now, knownTime(claims, running));
}

const RANK = { valid: 0, grace: 1, expired: 2 } as const;

/**
 * Compares leases for sorting, best first: by state, then by later issue, then by later end.
 *
 * @param running one running time, or running times by lease id.
 */
export function byWorth(
  now: number,
  running: RunningTime | undefined | ReadonlyMap<string, RunningTime>,
): (a: HeldLease, b: HeldLease) => number {
  const rank = (lease: HeldLease): number => {
    const seen = running instanceof Map ? running.get(lease.claims.lease_id) : running;
    const { state, reason } = statusOf(lease, now, seen);
    // A clock that is behind would otherwise rank a new lease below an old one.
    return reason === 'not_yet_valid' || reason === 'clock_rollback' ? RANK.valid : RANK[state];
  };
  const at = (time: string): number => parseTime(time)!;
  return (a, b) =>
    rank(a) - rank(b) ||
    at(b.claims.issued_at) - at(a.claims.issued_at) ||
    at(b.claims.grace_ends_at) - at(a.claims.grace_ends_at);
}

/** Limits the work in a directory that is full of temporary files. */
const MOST_TEMPORARY = 4;

/** Returns the lease file, its backup, and the newest temporary files of either. */
async function candidatePaths(lease: string): Promise<readonly string[]> {
  const [directory, name] = [dirname(lease), basename(lease)];
  const names = await readdir(directory).catch(orNothing([]));
  const left = names.filter((one) => one.startsWith(`${name}.`) && isTemporary(one));
  const dated = left.map(async (one) => {
    const path = join(directory, one);
    const { mtimeMs } = await lstat(path).catch(orNothing({ mtimeMs: 0 }));
    return { path, mtimeMs };
  });
  const newest = (await Promise.all(dated)).sort((a, b) => b.mtimeMs - a.mtimeMs);
  return [lease, backupOf(lease), ...newest.slice(0, MOST_TEMPORARY).map(({ path }) => path)];
}

function orNothing<T>(nothing: T): (error: unknown) => T {
  return (error) => {
    if (isSystemError(error)) return nothing;
    throw error;
  };
}

/** Both are undefined if the file is missing or damaged. */
async function readDaemonState(path: string): Promise<Pick<LicenseTexts, 'running' | 'announced'>> {
  const nothing = { running: undefined, announced: undefined };
  const { read } = await readTextFile(path);
  if (!read.ok) return nothing;
  try {
    const state: unknown = JSON.parse(read.text);
    if (!isJsonObject(state)) return nothing;
    const { running_time: running, announced_anchor: announced } = state;
    return {
      running: isRunningTime(running) ? running : undefined,
      announced: typeof announced === 'string' ? announced : undefined,
    };
  } catch {
    return nothing;
  }
}
