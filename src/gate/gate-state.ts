import { runningTime, type Boot, type RunningTime } from '../lease/known-time.ts';
import type { LeaseClaims } from '../lease/claims.ts';
import { parseTime } from '../lease/time.ts';
import { isAnnouncementOf } from './anchor.ts';
import { systemBoot } from './boot.ts';
import { decide, type Decision, type GateStatus, type Snapshot } from './decide.ts';
import { leasesHere, type UseOptions } from './lease-use.ts';
import {
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
import type { LeaseOwner, TrustMemory } from './machine-trust.ts';

export interface GateStateOptions extends UseOptions {
  readonly enforced: boolean;
  readonly clock?: () => number;
  readonly boot?: () => Boot;
  /** A lease that expires within this time counts as ending; longer than the interval of reads, ms. */
  readonly endingMs: number;
  readonly onChange: (status: GateStatus) => void;
}

export class GateState {
  readonly #files: ReadFiles;
  readonly #options: GateStateOptions;
  readonly #clock: () => number;
  readonly #boot: () => Boot;
  readonly #verdicts: Verdicts = new Map();
  #digest = '';
  /** Result of the last verification of the files. */
  #found: License | undefined;
  #leases: readonly HeldLease[] = [];
  #refused: readonly RefusedFile[] = [];
  #memory: TrustMemory | undefined;
  /** The last announcement of an anchor that was followed. */
  #announced: string | undefined;
  /** Running time that this process counted, by lease id. */
  #counted: ReadonlyMap<string, RunningTime> = new Map();
  #byDaemon: CountedByDaemon | undefined;
  #snapshot: Snapshot | undefined;

  constructor(files: ReadFiles, options: GateStateOptions) {
    this.#files = files;
    this.#options = options;
    this.#clock = options.clock ?? Date.now;
    this.#boot = options.boot ?? systemBoot;
  }

  check(feature: string): Decision {
    const { entitled, whenEntitled, whenNot } = this.#current();
    return entitled.has(feature) ? whenEntitled : whenNot;
  }

  status(): GateStatus {
    return this.#current().status;
  }

  async read(): Promise<void> {
    const texts = await readLicenseTexts(this.#files);
    if (this.#memory !== undefined && this.#isEnding(this.#memory)) {
      [this.#memory, this.#digest] = [undefined, ''];
    }
    const hadMemory = this.#memory !== undefined;
    const isAnnounced = hadMemory && announcesAnchor(texts, this.#announced);
    const license = this.#verifyChanged(texts, isAnnounced);
    await this.#useLeases();
    // The running time that was read before still counts if the file is missing, unless the file
    // contains another one.
    if (texts.running !== undefined) {
      this.#byDaemon = countOnByDaemon(this.#byDaemon, texts.running, this.#boot());
    }
    const { status } = this.#decide();
    if (license === undefined) return;
    this.#memory = rememberTrust(this.#memory, license, status, isAnnounced);
    if (isAnnounced || !hadMemory) this.#announced = texts.announced;
  }

  /** Verifies the files if they changed; returns undefined if they did not. */
  #verifyChanged(texts: LicenseTexts, isAnnounced: boolean): License | undefined {
    const keyset = this.#found?.keyset;
    // The keyset may be accepted later if the clock was ahead.
    const wasExpired = keyset?.ok === false && keyset.reason === 'keyset_expired';
    if (texts.digest === this.#digest && !isAnnounced && !wasExpired) return undefined;
    if (isAnnounced) this.#memory = undefined;
    const [verdicts, memory] = [this.#verdicts, this.#memory];
    this.#found = verifyLicense(texts, this.#clock(), { verdicts, memory });
    this.#digest = texts.digest;
    return this.#found;
  }

  /** Adds the usable leases of the files to the lease in force. */
  async #useLeases(): Promise<void> {
    const found = this.#found;
    if (found === undefined) return;
    const inForce = this.#snapshot?.status.lease;
    const held = this.#leases.filter(
      ({ claims }) =>
        claims === inForce && (found.leases.length === 0 || isOwnedBy(claims, found.owner)),
    );
    const here = await leasesHere(this.#files, found.leases, this.#options);
    const byText = new Map([...held, ...here.leases].map((lease) => [lease.text, lease]));
    this.#leases = [...byText.values()];
    this.#refused = [...here.refused, ...refusedFiles(found)];
  }

  #current(): Snapshot {
    const now = this.#clock();
    const snapshot = this.#snapshot;
    const isCurrent = snapshot !== undefined && now >= snapshot.from && now < snapshot.until;
    return isCurrent ? snapshot : this.#decide();
  }

  #decide(): Snapshot {
    const before = this.#snapshot?.status;
    const boot = this.#boot();
    this.#counted = countOn(this.#counted, this.#leases, boot);
    this.#byDaemon = this.#byDaemon && countOnByDaemon(this.#byDaemon, this.#byDaemon.read, boot);
    const after = decide({
      enforced: this.#options.enforced,
      leases: this.#leases,
      refused: this.#refused,
      trusted: this.#found?.trusted,
      running: longest(this.#counted, this.#byDaemon?.now),
      now: this.#clock(),
    });
    this.#snapshot = after;
    if (before !== undefined && !isSame(before, after.status)) {
      this.#options.onChange(after.status);
    }
    return after;
  }

  /**
   * Whether to forget the accepted trust because the lease in force has ended or is about to end; a
   * restart would accept the files as well. Keys that only the running process holds are forgotten
   * before the lease expires, so that a delivered lease by other keys replaces it in time.
   */
  #isEnding({ held }: TrustMemory): boolean {
    const { state, next_change_at } = this.status();
    if (held.by !== 'unpinned') return state === 'expired' || state === 'none';
    const leftMs = (): number => parseTime(next_change_at!)! - this.#clock();
    return state !== 'valid' || leftMs() < this.#options.endingMs;
  }
}

/** Whether a person announced the anchor, and the gate has not followed the announcement yet. */
function announcesAnchor({ root, announced }: LicenseTexts, before: string | undefined): boolean {
  if (announced === undefined || announced === before || root === undefined) return false;
  return root.read.ok && isAnnouncementOf(announced, root.read.text);
}

function isOwnedBy({ issuer, deployment_id }: LeaseClaims, owner: LeaseOwner | undefined): boolean {
  if (owner === undefined) return true;
  return issuer === owner.issuer && deployment_id === owner.installationId;
}

/** Returns the keys that verify the lease in force, or newer ones, and the owner of its leases. */
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

/** Returns the running time of each lease until now. */
function countOn(
  running: ReadonlyMap<string, RunningTime>,
  leases: readonly HeldLease[],
  boot: Boot,
): ReadonlyMap<string, RunningTime> {
  const ids = leases.map(({ claims }) => claims.lease_id);
  return new Map(ids.map((id) => [id, runningTime(running.get(id), id, boot)]));
}

interface CountedByDaemon {
  readonly read: RunningTime;
  /** The same until now, as counted by this process. */
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

/** Takes the daemon's running time where it is longer than the one of this process. */
function longest(
  counted: ReadonlyMap<string, RunningTime>,
  byDaemon: RunningTime | undefined,
): ReadonlyMap<string, RunningTime> {
  const own = byDaemon && counted.get(byDaemon.lease_id);
  if (own === undefined || own.seconds >= byDaemon!.seconds) return counted;
  return new Map([...counted, [own.lease_id, byDaemon!]]);
}

function isSame(a: GateStatus, b: GateStatus): boolean {
  const visible = ({ state, reason, lease, refused }: GateStatus): string =>
    JSON.stringify([state, reason, lease, refused]);
  return visible(a) === visible(b);
}
