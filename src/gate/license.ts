import { createPublicKey, hash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readdir, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isTemporary } from '../atomic-file.ts';
import { isSystemError } from '../errors.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { isJsonObject, parseStrictJson } from '../lease/json.ts';
import { importKeyset, publicKeyId, type TrustedKeys } from '../lease/keys.ts';
import { isRunningTime, knownTime, type RunningTime } from '../lease/known-time.ts';
import type { LeaseReason } from '../lease/reasons.ts';
import { LeaseError, orRefused, type Refused } from '../lease/refusal.ts';
import { leaseStatus, type LeaseStatus } from '../lease/status.ts';
import { parseTime } from '../lease/time.ts';
import { verifyLease } from '../lease/verify.ts';
import type { LicenseFiles } from '../license-files.ts';

/** A lease that verified, and the text that did. */
export interface HeldLease {
  readonly path: string;
  readonly text: string;
  readonly claims: LeaseClaims;
}

/** Why there is none in a file. */
export interface RefusedFile {
  readonly path: string;
  readonly reason: LeaseReason;
  readonly detail: string;
}

/** What the files of a license hold. */
export interface License {
  readonly keyset:
    | { readonly ok: true; readonly keys: TrustedKeys }
    | ({ ok: false } & RefusedFile);
  /** All that verified, the best first. The first is the lease that counts. */
  readonly leases: readonly HeldLease[];
  /** The others; the lease file itself first, when it is one of them. */
  readonly refused: readonly RefusedFile[];
  /** As the daemon has counted it, where it has. */
  readonly running: RunningTime | undefined;
}

/** The second copy of the lease beside the first, for when something wrote over that. */
export function backupOf(lease: string): string {
  return `${lease}.bak`;
}

/**
 * Reads and verifies the lease file, its backup, and what was being written when a process was
 * killed. Where they are links to what a secret store delivers, these are followed. What is beside
 * the lease file is no lease of another deployment, unless that file has none.
 *
 * @param now milliseconds since the Unix epoch, by which the best is found.
 */
export async function readLicense(
  files: Pick<LicenseFiles, 'lease' | 'keyset' | 'state'>,
  now: number,
): Promise<License> {
  return verifyLicense(await readLicenseTexts(files), now);
}

/** What is in the files of a license, for `verifyLicense`. */
export interface LicenseTexts {
  readonly keyset: TextFile;
  /** The lease file first. */
  readonly leases: readonly TextFile[];
  readonly running: RunningTime | undefined;
  /** Of keyset and leases: where it is the same, so is what verifies. */
  readonly digest: string;
}

interface TextFile {
  readonly path: string;
  readonly read: Read;
}

/** The first half of `readLicense`, without the half that takes time. */
export async function readLicenseTexts(
  files: Pick<LicenseFiles, 'lease' | 'keyset' | 'state'>,
): Promise<LicenseTexts> {
  const at = async (path: string): Promise<TextFile> => ({ path, read: await readText(path) });
  const [keyset, running, leases] = await Promise.all([
    at(files.keyset),
    readRunningTime(files.state),
    candidatesOf(files.lease).then((paths) => Promise.all(paths.map(at))),
  ]);
  const digest = hash('sha256', JSON.stringify([keyset, leases]));
  return { keyset, leases, running, digest };
}

/** By keyset and lease: what was verified already. */
export type Verdicts = Map<string, ReturnType<typeof verifyLease>>;

/** @param verdicts those of the last time, of which what is not needed any more is dropped. */
export function verifyLicense(
  { keyset: keysetFile, leases: leaseFiles, running }: LicenseTexts,
  now: number,
  verdicts: Verdicts = new Map(),
): License {
  const keyset = keysetOf(keysetFile);
  const before = new Map(verdicts);
  verdicts.clear();
  const leases: HeldLease[] = [];
  const refused: RefusedFile[] = [];
  for (const [i, { path, read }] of leaseFiles.entries()) {
    if (!read.ok) {
      const { reason, detail } = read;
      if (reason !== 'missing' || i === 0) refused.push({ path, reason, detail });
      continue;
    }
    const id = hash('sha256', JSON.stringify([keysetFile.read, read.text]));
    const found =
      verdicts.get(id) ??
      before.get(id) ??
      (keyset.ok ? verifyLease(read.text, keyset.keys) : keyset);
    verdicts.set(id, found);
    if (found.ok) leases.push({ path, text: read.text, claims: found.claims });
    else refused.push({ path, reason: found.reason, detail: found.detail });
  }
  const own = leases.find(({ path }) => path === leaseFiles[0]?.path)?.claims.deployment_id;
  const counting = leases.filter(({ claims }) => own === undefined || claims.deployment_id === own);
  return { keyset, leases: counting.sort(byWorth(now, running)), refused, running };
}

/** What a lease is worth now, by all that is known of time. */
export function statusOf(
  { claims }: Pick<HeldLease, 'claims'>,
  now: number,
  running: RunningTime | undefined,
): LeaseStatus {
  return leaseStatus(claims, now, knownTime(claims, running));
}

const RANK = { valid: 0, grace: 1, expired: 2 } as const;

/**
 * Orders leases, the best first: what works, then what was issued later, then what lasts longer.
 *
 * @param running one, or what is known of each lease by its id.
 */
export function byWorth(
  now: number,
  running: RunningTime | undefined | ReadonlyMap<string, RunningTime>,
): (a: HeldLease, b: HeldLease) => number {
  const rank = (lease: HeldLease): number => {
    const seen = running instanceof Map ? running.get(lease.claims.lease_id) : running;
    const { state, reason } = statusOf(lease, now, seen);
    // A clock that is behind makes a new lease look worse than an old one.
    return reason === 'not_yet_valid' || reason === 'clock_rollback' ? RANK.valid : RANK[state];
  };
  const at = (time: string): number => parseTime(time)!;
  return (a, b) =>
    rank(a) - rank(b) ||
    at(b.claims.issued_at) - at(a.claims.issued_at) ||
    at(b.claims.grace_ends_at) - at(a.claims.grace_ends_at);
}

/** So that nothing that fills the directory keeps who reads the license busy. */
const MOST_TEMPORARY = 4;

/** The lease file, its backup, and the newest temporary files of `writeAtomically` for either. */
async function candidatesOf(lease: string): Promise<readonly string[]> {
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

/** A keyset, or why it cannot be used. */
function keysetOf({ path, read }: TextFile): License['keyset'] {
  if (!read.ok && read.reason === 'missing') {
    return { ok: false, path, reason: 'unknown_key', detail: `there are no keys in ${path}` };
  }
  const imported = read.ok ? importKeys(read.text) : read;
  return imported.ok ? imported : { ...imported, path };
}

/**
 * Takes the keys that verify leases in any of the forms in which they are handed over: a
 * `PublicKeyset`, one JWK of it, or one key as SubjectPublicKeyInfo in PEM.
 */
export function importKeys(
  text: string,
): { readonly ok: true; readonly keys: TrustedKeys } | Refused {
  return orRefused(() => {
    const value = text.includes('-----BEGIN ')
      ? jwkOfPem(text)
      : parseStrictJson(text, 'the keyset');
    if (!isJsonObject(value) || !Object.hasOwn(value, 'kty')) return importKeyset(value);
    // The id of a single key is not always beside it.
    return importKeyset({ keys: [{ kid: publicKeyId(String(value['x'])), ...value }] });
  });
}

function jwkOfPem(pem: string): object {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) {
    throw new LeaseError('private_key', 'the PEM has the private part of a key');
  }
  try {
    return createPublicKey(pem).export({ format: 'jwk' });
  } catch {
    throw new LeaseError('invalid_keyset', 'the PEM is no public key');
  }
}

/** Anything wrong with it is as good as none: the daemon counts anew. */
async function readRunningTime(path: string): Promise<RunningTime | undefined> {
  const read = await readText(path);
  if (!read.ok) return undefined;
  try {
    const state: unknown = JSON.parse(read.text);
    const running = isJsonObject(state) ? state['running_time'] : undefined;
    return isRunningTime(running) ? running : undefined;
  } catch {
    return undefined;
  }
}

const MAX_BYTES = 64 * 1024;

type Read =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: LeaseReason; readonly detail: string };

async function readText(path: string): Promise<Read> {
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK a pipe at this place would make the opening wait for ever.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile()) return { ok: false, reason: 'unreadable', detail: `${path} is no file` };
    if (stats.size > MAX_BYTES) {
      return { ok: false, reason: 'too_large', detail: `${path} has ${stats.size} bytes` };
    }
    return { ok: true, text: await file.readFile('utf8') };
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const { code, message } = error;
    return code === 'ENOENT' || code === 'ENOTDIR'
      ? { ok: false, reason: 'missing', detail: `there is no file ${path}` }
      : { ok: false, reason: 'unreadable', detail: message };
  } finally {
    await file?.close();
  }
}
