import { quarantine, storeKeyset, storeLease } from '../src/client/lease-store.ts';
import { withLock } from '../src/base/file-lock.ts';
import type { Log } from '../src/base/log.ts';
import { backupOf, byWorth, statusOf, type HeldLease, type License } from '../src/gate/license.ts';
import { verifyLease } from '../src/lease/verify.ts';
import { Acceptance } from './accepted.ts';
import type { FaultLog } from './fault-log.ts';
import type { Machine } from './machine.ts';
import { asServiceError, type KeptLease } from './renewal.ts';

/**
 * The license files are repaired at once, but at most this often within a minute, so that another
 * process that keeps writing them cannot keep this one busy.
 */
const MOST_REPAIRS = 20;
const REPAIRS_WITHIN_SECONDS = 60;

/** The best lease and the accepted trust in memory, from which the license files are repaired. */
export class KeptLicense {
  readonly #machine: Machine;
  readonly #log: Log;
  readonly #faults: FaultLog;
  readonly #acceptance: Acceptance;
  /** Uptime in seconds at each repair of the last minute. */
  #repairs: readonly number[] = [];
  lease: HeldLease | undefined;
  /** Whether this machine has a device key; without one, leases and keys are delivered to it. */
  isDevice = false;
  /** Whether the license files must be read again. */
  isOutdated = true;
  /** Time until the next repair is allowed, ms; undefined if none is waiting. */
  heldBackMs: number | undefined;
  /** The fault of the license files that could not be repaired. */
  unrepaired: string | undefined;

  constructor(machine: Machine, log: Log, faults: FaultLog) {
    this.#machine = machine;
    this.#log = log;
    this.#faults = faults;
    this.#acceptance = new Acceptance(machine.files);
  }

  /** Keeps a new lease, even if it could not be stored. */
  keep({ lease, accepted }: KeptLease): void {
    [this.lease, this.isOutdated] = [lease, true];
    this.#acceptance.accepted = accepted;
  }

  /** Reads the license files, and repairs them from memory and from their better copies. */
  async inspect(): Promise<void> {
    const { files, boot } = this.#machine;
    this.isOutdated = true;
    this.heldBackMs = undefined;
    try {
      let license = await this.read();
      if (this.#isWrong(license)) {
        const now = boot().uptime_seconds;
        this.#repairs = this.#repairs.filter((at) => at > now - REPAIRS_WITHIN_SECONDS);
        const left =
          this.#repairs.length < MOST_REPAIRS
            ? 0
            : this.#repairs[0]! + REPAIRS_WITHIN_SECONDS - now;
        if (left > 0) this.heldBackMs = Math.ceil(left * 1000);
        else license = await withLock(files.lock, 0, () => this.#repair());
      }
      this.lease = this.#best(license);
      this.isOutdated = this.#isWrong(license);
      this.unrepaired = this.isOutdated ? this.#whatIsWrong(license) : undefined;
      this.#faults.resolve('files', 'the license files are correct again');
    } catch (thrown) {
      const { reason, message } = asServiceError(thrown);
      if (reason !== 'locked') this.unrepaired = message;
      this.#faults.reportError('files', 'the license files cannot be repaired', thrown);
    }
  }

  async read(): Promise<License> {
    const isDevice = this.isDevice;
    const now = this.#machine.clock();
    const { license, isAnnounced } = await this.#acceptance.read(this.lease, isDevice, now);
    if (isAnnounced) {
      const { installationId, issuer, held } = this.#acceptance.accepted!;
      const by = held.root ? `the root ${held.root.lineage.at(-1)}` : 'keys without a root';
      this.#log.warn(
        `accepted files that a person put in place: installation ${installationId} of the issuer ${issuer}, verified by ${by}`,
      );
    }
    return license;
  }

  async #repair(): Promise<License> {
    const { boot } = this.#machine;
    // The previous holder of the lock may have changed the files.
    let license = await this.read();
    if (!this.#isWrong(license)) return license;
    this.#repairs = [...this.#repairs, boot().uptime_seconds];
    license = await this.#repairTrust(license);
    this.lease = this.#best(license);
    await this.#repairLease(license);
    return this.read();
  }

  /** Returns the best of the leases in the files and the one in memory. */
  #best(license: License): HeldLease | undefined {
    const { leases, running } = license;
    const held = this.lease;
    const isOther = leases.every(({ text }) => text !== held?.text);
    const all = held && isOther && this.#isGood(held, license) ? [...leases, held] : [...leases];
    const [lease] = all.sort(byWorth(this.#machine.clock(), running));
    return lease;
  }

  /** Whether a lease verifies by the accepted keys and belongs to the accepted owner. */
  #isGood({ text, claims }: HeldLease, { trusted }: License): boolean {
    const { accepted } = this.#acceptance;
    if (accepted === undefined) return trusted !== undefined && verifyLease(text, trusted.keys).ok;
    const isOwn =
      claims.deployment_id === accepted.installationId && claims.issuer === accepted.issuer;
    return isOwn && verifyLease(text, accepted.held.keys).ok;
  }

  #isWrong(license: License): boolean {
    return this.#needsAnchor(license) || this.#needsKeyset(license) || this.#needsLease(license);
  }

  #whatIsWrong({ keyset, refusedAnchor, refused }: License): string {
    const { files } = this.#machine;
    const lease = refused.find(({ path }) => path === files.lease);
    const wrong = refusedAnchor ?? (keyset.ok ? lease : keyset);
    return `${wrong?.path ?? files.lease}: ${wrong?.detail ?? 'a better lease is known'}`;
  }

  #needsAnchor({ anchor }: License): boolean {
    const expected = this.#acceptance.accepted?.anchor;
    if (expected === undefined) return false;
    return anchor.kind !== 'held' || anchor.text !== expected;
  }

  /** Whether the keyset file has no keys, or the best lease is not expired but does not verify by them. */
  #needsKeyset(license: License): boolean {
    const { keyset, running } = license;
    if (!keyset.ok) return this.#acceptance.accepted !== undefined;
    const best = this.#best(license);
    if (best === undefined || verifyLease(best.text, keyset.keys).ok) return false;
    return statusOf(best, this.#machine.clock(), running).state !== 'expired';
  }

  #needsLease(license: License): boolean {
    const { files } = this.#machine;
    const best = this.#best(license);
    if (best === undefined) return false;
    const holdsBest = (path: string): boolean =>
      license.leases.some((lease) => lease.path === path && lease.text === best.text);
    // Delivered leases have no backup.
    const isBackedUp = !this.isDevice || holdsBest(backupOf(files.lease));
    return !holdsBest(files.lease) || !isBackedUp;
  }

  /** Restores the anchor first, because readers of the files use the keys in it. */
  async #repairTrust(license: License): Promise<License> {
    const { files } = this.#machine;
    const { anchor, document } = this.#acceptance.accepted ?? {};
    if (anchor !== undefined && this.#needsAnchor(license)) {
      const isThere = license.anchor.kind === 'held';
      const otherwise = isThere ? 'it was older than the accepted one' : 'it was missing';
      const why = license.refusedAnchor?.detail ?? otherwise;
      await this.#restore(files.root, anchor, why);
    }
    if (document === undefined || !this.#needsKeyset(license)) return license;
    const { keyset } = license;
    const why = keyset.ok ? 'no lease verifies by its keys' : keyset.detail;
    await this.#restore(files.keyset, document, why);
    return this.read();
  }

  async #restore(path: string, text: string, why: string): Promise<void> {
    const bad = await quarantine(path, this.#machine.clock());
    await storeKeyset(path, text);
    this.#log.warn(
      `put ${path} back: ${why}${bad === undefined ? '' : `; the former file is kept as ${bad}`}`,
    );
  }

  async #repairLease(license: License): Promise<void> {
    if (!this.#needsLease(license)) return;
    const { files, clock } = this.#machine;
    const { text } = this.lease!;
    const isOther = license.leases.every(
      ({ path, text: there }) => path !== files.lease || there !== text,
    );
    const bad = isOther ? await quarantine(files.lease, clock()) : undefined;
    await storeLease(files.lease, text);
    if (!isOther) return;
    const refusal = license.refused.find(({ path }) => path === files.lease);
    const why = refusal?.detail ?? 'a better lease is known';
    const kept = bad === undefined ? '' : `; the former file is kept as ${bad}`;
    this.#log.warn(`put ${files.lease} back: ${why}${kept}`);
  }
}
