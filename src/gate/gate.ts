import type { MiddlewareHandler } from 'hono';
import { ServiceError } from '../base/errors.ts';
import { isId, type LeaseClaims } from '../lease/claims.ts';
import { runningTime, type Boot, type RunningTime } from '../lease/known-time.ts';
import { parseTime } from '../lease/time.ts';
import { licenseFiles, parsePin, type LicenseFiles } from './license-files.ts';
import { homeFrom } from '../base/resolve-settings.ts';
import { isNodeTooOld, oldestNode } from '../base/version.ts';
import { isAnnouncementOf } from './anchor.ts';
import { systemBoot } from './boot.ts';
import { leasesHere } from './lease-use.ts';
import { decide, type Decision, type GateStatus, type Snapshot } from './decide.ts';
import { requireFeature } from './hono.ts';
import {
  backupOf,
  readLicenseTexts,
  refusedFiles,
  verifyLicense,
  type HeldLease,
  type License,
  type LicenseTexts,
  type ReadFiles,
  type RefusedFile,
  type Verdicts,
} from './license.ts';
import type { LeaseOwner, MachineTrust, TrustMemory } from './machine-trust.ts';
import { watchFiles } from './watch.ts';

export interface GateOptions {
  /** Those of this machine by default, as all else of this package finds them; see `licenseFiles`. */
  readonly files?: ReadFiles;
  /**
   * Fingerprint of the issuer's root: only keys that descend from it verify leases. It takes the
   * place of `SERVICE_LICENSE_ROOT`.
   */
  readonly root?: string;
  /**
   * Product name of the program, which refuses leases for other products. If absent, leases for
   * every product are accepted.
   */
  readonly product?: string;
  /** `machineHash` of this machine, to which leases may be bound; of its own id by default. */
  readonly machineHash?: () => Promise<string | undefined>;
  /** Whether anything is refused. */
  readonly enforced: boolean;
  /** Milliseconds since the Unix epoch; `Date.now` by default. */
  readonly clock?: () => number;
  /** Since when the machine runs; that of the system by default. */
  readonly boot?: () => Boot;
  /** How often the files are read although nothing was told of them: every 30 s, or more often. */
  readonly pollMs?: number;
  /** Told what is new, after it is in force. What it throws is told to `warn`. */
  readonly onChange?: (status: GateStatus) => void;
  /** Told what keeps the gate from noticing changes at once. What it throws is lost. */
  readonly warn?: (text: string) => void;
}

/** Keeps what is licensed in memory, and up to date with the files. */
export interface LicenseGate {
  /** Takes less than a microsecond. @param feature the name of an entitlement. */
  check(feature: string): Decision;
  /** Middleware of Hono, that lets a request pass only while the feature is licensed. */
  requireFeature(feature: string): MiddlewareHandler;
  status(): GateStatus;
  /** Ends the watching; `check` goes by what was read last. */
  close(): Promise<void>;
}

function refuseOldNode(): void {
  if (!isNodeTooOld()) return;
  const found = process.versions.node;
  throw new ServiceError(
    'failure',
    `the license gate needs Node ${oldestNode()} or newer, not ${found}`,
    {
      remedy: `Run the program with Node ${oldestNode()} or newer.`,
    },
  );
}

const LONGEST_POLL_MS = 30_000;

/** After an event: what is written within one tick of the file system's clock can look the same. */
const LOOK_AGAIN_MS = 200;

/**
 * Reads and watches the files of a license. Whatever is there or is not, it opens, and goes on when
 * something good comes. What was read and is still better is never given up for what is in the files
 * now: they may be gone, torn, tampered with or older. Once a lease is in force, the gate accepts only
 * keys that the accepted ones vouch for, and only leases of the same issuer and installation.
 *
 * A lease for another `product`, or bound to another device or machine, is refused.
 *
 * @throws ServiceError `invalid_setting` for a `root` that is not a fingerprint, or a `product` that
 * no lease can name; `failure` on a Node older than 24.15.
 */
export async function openLicenseGate(options: GateOptions): Promise<LicenseGate> {
  refuseOldNode();
  const { enforced, clock = Date.now, boot = systemBoot, onChange } = options;
  const files = filesOf(options);
  const use = { product: productOf(options), machineHash: options.machineHash };
  const pollMs = Math.min(options.pollMs ?? LONGEST_POLL_MS, LONGEST_POLL_MS);
  let digest = '';
  /** The files at the last read. */
  let found: License | undefined;
  let leases: readonly HeldLease[] = [];
  let refused: readonly RefusedFile[] = [];
  let trusted: MachineTrust | undefined;
  let memory: TrustMemory | undefined;
  /** The last announcement that this gate followed. */
  let announced: string | undefined;
  const verdicts: Verdicts = new Map();
  /** As this gate has counted it, by the id of the lease. */
  let counted: ReadonlyMap<string, RunningTime> = new Map();
  let byDaemon: CountedByDaemon | undefined;
  let snapshot: Snapshot | undefined;

  // Whoever is told must not keep the gate from going on.
  const warn = (text: string): void => {
    try {
      options.warn?.(text);
    } catch {
      // Nobody is left to be told.
    }
  };
  const tell = (status: GateStatus): void => {
    try {
      onChange?.(status);
    } catch (error) {
      warn(`a change of the license could not be told: ${String(error)}`);
    }
  };

  /** Decides anew, by what is in memory and by the time. */
  const settle = (): Snapshot => {
    const before = snapshot?.status;
    const since = boot();
    counted = countOn(counted, leases, since);
    byDaemon = byDaemon && countOnByDaemon(byDaemon, byDaemon.read, since);
    const running = longest(counted, byDaemon?.now);
    const after = decide({ enforced, leases, refused, trusted, running, now: clock() });
    snapshot = after;
    if (before !== undefined && !isSame(before, after.status)) tell(after.status);
    return after;
  };
  const current = (): Snapshot => {
    const now = clock();
    return snapshot !== undefined && now >= snapshot.from && now < snapshot.until
      ? snapshot
      : settle();
  };
  const read = async (): Promise<void> => {
    const texts = await readLicenseTexts(files);
    if (memory !== undefined && isEnding(memory, current().status, clock())) {
      [memory, digest] = [undefined, ''];
    }
    const hadMemory = memory !== undefined;
    const isAnnounced = hadMemory && announcesAnchor(texts, announced);
    let license: License | undefined;
    const isOther = texts.digest !== digest || isAnnounced;
    // The clock may have been ahead.
    if (isOther || (found?.keyset.ok === false && found.keyset.reason === 'keyset_expired')) {
      if (isAnnounced) memory = undefined;
      license = verifyLicense(texts, clock(), { verdicts, memory });
      ({ trusted } = license);
      ({ digest } = texts);
      found = license;
    }
    if (found !== undefined) {
      const { owner } = found;
      const isAny = found.leases.length === 0;
      const held = leases.filter(
        ({ claims }) => claims === snapshot?.status.lease && (isAny || isOf(claims, owner)),
      );
      const here = await leasesHere(files, found.leases, use);
      leases = distinct([...held, ...here.leases]);
      refused = [...here.refused, ...refusedFiles(found)];
    }
    // What was known stays known where the file is gone, and not where the file says otherwise.
    if (texts.running !== undefined) byDaemon = countOnByDaemon(byDaemon, texts.running, boot());
    const { status } = settle();
    if (license === undefined) return;
    memory = rememberTrust(memory, license, status, isAnnounced);
    if (isAnnounced || !hadMemory) announced = texts.announced;
  };
  const reading = inTurn(read, (error) => {
    warn(`the license could not be read: ${String(error)}`);
  });
  let again: NodeJS.Timeout | undefined;
  const watch = await watchFiles(
    [files.lease, backupOf(files.lease), files.keyset, ...(files.root ? [files.root] : [])],
    () => {
      void reading.start();
      clearTimeout(again);
      again = setTimeout(() => void reading.start(), LOOK_AGAIN_MS).unref();
    },
    (error) => warn(`a new license is noticed within ${pollMs / 1000} s, not at once: ${error}`),
  );
  await reading.start();
  const polling = setInterval(() => void reading.start(), pollMs).unref();

  const check = (feature: string): Decision => {
    const { entitled, whenEntitled, whenNot } = current();
    return entitled.has(feature) ? whenEntitled : whenNot;
  };
  return {
    check,
    requireFeature: (feature) => requireFeature(check, feature),
    status: () => current().status,
    async close() {
      clearInterval(polling);
      await watch.close();
      clearTimeout(again);
      await reading.stop();
    },
  };
}

function filesOf({ files = ownFiles(), root }: GateOptions): ReadFiles {
  return root === undefined ? files : { ...files, pin: parsePin(root, 'the option root') };
}

/** @throws ServiceError `invalid_setting` */
function productOf({ product }: GateOptions): string | undefined {
  if (product === undefined || isId(product)) return product;
  throw new ServiceError(
    'invalid_setting',
    `the option product is '${product}', not 1 to 128 visible ASCII characters`,
  );
}

function ownFiles(): LicenseFiles {
  return licenseFiles(homeFrom(process.env, process.cwd()), process.env);
}

/** Longer than it takes to read the files again. */
const ENDING_MS = 2 * LONGEST_POLL_MS;

/**
 * Whether the gate forgets what it accepted, because the lease in force has ended or is about to; a
 * restart would accept the files as well. Keys that only the running process holds are forgotten
 * before the lease expires, so that a delivered lease by other keys replaces it in time.
 */
function isEnding(
  { held }: TrustMemory,
  { state, next_change_at }: GateStatus,
  now: number,
): boolean {
  if (held.by !== 'unpinned') return state === 'expired' || state === 'none';
  return state !== 'valid' || parseTime(next_change_at!)! - now < ENDING_MS;
}

/** Whether a person has put the anchor in place, and the gate has not followed that yet. */
function announcesAnchor({ root, announced }: LicenseTexts, before: string | undefined): boolean {
  if (announced === undefined || announced === before || root === undefined) return false;
  return root.read.ok && isAnnouncementOf(announced, root.read.text);
}

function isOf({ issuer, deployment_id }: LeaseClaims, owner: LeaseOwner | undefined): boolean {
  if (owner === undefined) return true;
  return issuer === owner.issuer && deployment_id === owner.installationId;
}

/**
 * What the gate has accepted after a read: the keys that verify the lease in force, or later ones,
 * and the owner of its leases.
 */
function rememberTrust(
  before: TrustMemory | undefined,
  { trusted, leases, owner }: License,
  { lease, state }: GateStatus,
  isAnnounced: boolean,
): TrustMemory | undefined {
  if (trusted === undefined) return before;
  if (before !== undefined) return { ...before, held: trusted };
  if (isAnnounced && owner !== undefined) return { ...owner, held: trusted };
  const isVerified = leases.some(({ claims }) => claims === lease);
  if (lease === null || !isVerified) return undefined;
  if (trusted.by === 'unpinned' && state !== 'valid') return undefined;
  return { held: trusted, issuer: lease.issuer, installationId: lease.deployment_id };
}

/** One at a time: what is asked for meanwhile is done once, after that. */
function inTurn(work: () => Promise<void>, onError: (error: unknown) => void) {
  let wanted = false;
  let working: Promise<void> | undefined;
  const workOff = async (): Promise<void> => {
    while (wanted) {
      wanted = false;
      await work().catch(onError);
    }
    working = undefined;
  };
  const start = (): Promise<void> => {
    wanted = true;
    return (working ??= workOff());
  };
  const stop = (): Promise<void> => {
    wanted = false;
    return working ?? Promise.resolve();
  };
  return { start, stop };
}

/** Each once, though it is in several files. */
function distinct(leases: readonly HeldLease[]): readonly HeldLease[] {
  return [...new Map(leases.map((lease) => [lease.text, lease])).values()];
}

/** For how long each of the leases has been seen by now. */
function countOn(
  running: ReadonlyMap<string, RunningTime>,
  leases: readonly HeldLease[],
  boot: Boot,
): ReadonlyMap<string, RunningTime> {
  const ids = leases.map(({ claims }) => claims.lease_id);
  return new Map(ids.map((id) => [id, runningTime(running.get(id), id, boot)]));
}

interface CountedByDaemon {
  /** As the file says. */
  readonly read: RunningTime;
  /** As it is by now: nothing that another process has counted since is known of. */
  readonly now: RunningTime;
}

function countOnByDaemon(
  before: CountedByDaemon | undefined,
  read: RunningTime,
  boot: Boot,
): CountedByDaemon {
  const isSameText = JSON.stringify(before?.read) === JSON.stringify(read);
  return { read, now: runningTime(isSameText ? before!.now : read, read.lease_id, boot) };
}

/** Whoever has counted more has seen more. */
function longest(
  counted: ReadonlyMap<string, RunningTime>,
  byDaemon: RunningTime | undefined,
): ReadonlyMap<string, RunningTime> {
  const own = byDaemon && counted.get(byDaemon.lease_id);
  if (own === undefined || own.seconds >= byDaemon!.seconds) return counted;
  return new Map([...counted, [own.lease_id, byDaemon!]]);
}

function isSame(a: GateStatus, b: GateStatus): boolean {
  const told = ({ state, reason, lease, refused }: GateStatus): string =>
    JSON.stringify([state, reason, lease, refused]);
  return told(a) === told(b);
}
