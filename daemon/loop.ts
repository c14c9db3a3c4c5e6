import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { quarantine, storeKeyset, storeLease } from '../src/client/lease-store.ts';
import { withLock } from '../src/client/lock.ts';
import { isSystemError, ServiceError } from '../src/base/errors.ts';
import { backupOf, byWorth, statusOf, type HeldLease, type License } from '../src/gate/license.ts';
import { runningTime, type RunningTime } from '../src/lease/known-time.ts';
import type { LeaseStatus } from '../src/lease/status.ts';
import { formatTime } from '../src/lease/time.ts';
import { verifyLease } from '../src/lease/verify.ts';
import type { Log } from '../src/base/log.ts';
import { Acceptance } from './accepted.ts';
import { deniedSince } from './denial.ts';
import { isDue, isFailing, planAttempt, stateTime, type Patience, type Plan } from './plan.ts';
import {
  asServiceError,
  failed,
  renew,
  type KeptLease,
  type LatestState,
  type Machine,
} from './renewal.ts';
import { NO_STATE, readState, withAnnounced, writeState, type DaemonState } from './state.ts';

/** Has itself called; what it returns ends that. */
export type Subscribe = (call: () => void) => () => void;

/** How things are after a look. */
export interface Tick {
  readonly state: DaemonState;
  readonly lease: HeldLease | undefined;
  /** Of that lease. */
  readonly status: LeaseStatus | undefined;
}

export interface LoopOptions {
  /** Ends the loop, also in the middle of a request. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Whoever wants it to look now, and not to wait any longer after a failure: SIGHUP. */
  readonly wake?: Subscribe;
  /** Whoever sees that lease, keyset or key may be another: it looks now. */
  readonly watch?: Subscribe;
  /** Before each look; what it throws ends the loop. */
  readonly beforeLook?: () => Promise<void>;
  /** After each look, at least once a minute but while a request is waited for. */
  readonly onTick?: (tick: Tick) => void;
  /** Rejects or resolves when the signal is aborted. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** A clock may be set at any time, and a machine sleep: no wait is longer. */
const LONGEST_WAIT_MS = 60_000;

/** Keeps the lease of this machine fresh and its files whole, until it is told to end. */
export async function runLoop(machine: Machine, options: LoopOptions): Promise<void> {
  const { signal, log, wake, watch, beforeLook, onTick } = options;
  const { wait = (ms, alarm) => sleep(ms, undefined, { signal: alarm }) } = options;
  const keeper = new Keeper(machine, log, signal);
  let alarm = new AbortController();
  const ring = (): void => alarm.abort();
  const sleepIn = wake?.(() => {
    keeper.isImpatient = true;
    ring();
  });
  const lookAway = watch?.(ring);
  signal.addEventListener('abort', ring);
  try {
    while (!signal.aborted) {
      alarm = new AbortController();
      await beforeLook?.();
      const { tick, waitMs } = await keeper.look();
      onTick?.(tick);
      if (!alarm.signal.aborted && !signal.aborted) {
        await wait(waitMs, alarm.signal).catch(() => {});
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', ring);
    sleepIn?.();
    lookAway?.();
  }
}

/** How much of the running time a power cut may cost: so much longer a lease would last. */
const RUNNING_TIME_SECONDS = 3600;

/**
 * The license files are repaired at once, but at most this often within a minute, so that another
 * process that keeps writing them does not keep this one busy.
 */
const MOST_REPAIRS = 20;
const REPAIRS_WITHIN_SECONDS = 60;

/** Which files there are, to see when one is another. */
interface Stamps {
  readonly lease: string;
  readonly backup: string;
  readonly keyset: string;
  readonly root: string;
  readonly key: string;
  readonly state: string;
}

/** What the loop knows from one look to the next. */
class Keeper {
  readonly #machine: Machine;
  readonly #log: Log;
  readonly #signal: AbortSignal;
  /** Whether somebody asked not to wait any longer after a failure. */
  isImpatient = false;
  #stamps: Stamps | undefined;
  /** Of the lease and its keys: whether they have to be read. */
  #isOutdated = true;
  /** Uptime in seconds at each repair of the last minute. */
  #repairs: readonly number[] = [];
  /** For how long what is wrong has to wait, as it was put right just now. */
  #heldBackMs: number | undefined;
  /** The best lease that there was. */
  #kept: HeldLease | undefined;
  readonly #acceptance: Acceptance;
  /** The fault of the license files that could not be repaired. */
  #unrepaired: string | undefined;
  #state: DaemonState = NO_STATE;
  /** Whether the state is newer than what is on disk. */
  #isUnsaved = false;
  /** What the last failure was about: with another device or lease it says nothing. */
  #subject: string | undefined;
  /** What is wrong, as it was last logged. */
  readonly #faults = new Map<string, string>();

  constructor(machine: Machine, log: Log, signal: AbortSignal) {
    this.#machine = machine;
    this.#acceptance = new Acceptance(machine.files);
    this.#log = log;
    this.#signal = signal;
  }

  /** Sees what has changed, puts right what is wrong, and asks for a lease when it is time. */
  async look(): Promise<{ readonly tick: Tick; readonly waitMs: number }> {
    const { files, clock } = this.#machine;
    const before = this.#stamps;
    const stamps = await stampsOf(files);
    this.#stamps = stamps;
    if (stamps.state !== before?.state && !this.#isUnsaved) {
      this.#state = await this.#readState();
    }
    const isSame = (name: keyof Stamps): boolean => stamps[name] === before?.[name];
    if (this.#isOutdated || !(['lease', 'backup', 'keyset', 'root'] as const).every(isSame)) {
      await this.#inspect();
    }

    const isNewSubject = before !== undefined && this.#subject !== this.#currentSubject();
    if (isNewSubject) this.#faults.delete('renewal');
    const isImpatient = this.isImpatient || isNewSubject;
    this.isImpatient = false;
    const plan = this.#plan(isImpatient ? 'until_due' : 'usual');
    if (isDue(plan, clock())) await this.#renew(isImpatient);
    this.#tellDenial();
    this.#subject = this.#currentSubject();
    const next = this.#plan('usual');
    if (next.because === 'not_enrolled') {
      const text = `${files.key} is not there: nothing is asked for until this machine is enrolled`;
      this.#fault('device', 'missing', text);
    } else {
      this.#right('device', 'this machine is enrolled');
    }
    await this.#save(next);

    const lease = this.#kept;
    const running = lease && this.#runningTime(lease);
    const status = lease && statusOf(lease, clock(), running);
    // What is due and was not done is held up by another process, or by the disk.
    const left = next.at === null || isDue(next, clock()) ? LONGEST_WAIT_MS : next.at - clock();
    return {
      tick: { state: this.#state, lease, status },
      waitMs: Math.min(left, this.#heldBackMs ?? LONGEST_WAIT_MS, LONGEST_WAIT_MS),
    };
  }

  async #readState(): Promise<DaemonState> {
    return readState(this.#machine.files.state, (why) => {
      this.#fault('state', why, `${why}: it is written again by what is remembered`);
      this.#isUnsaved = true;
      return this.#state;
    });
  }

  #plan(patience: Patience): Plan {
    const { clock, boot } = this.#machine;
    const circumstances = {
      isDevice: this.#stamps!.key !== MISSING,
      lease: this.#kept?.claims,
      state: this.#state,
      now: clock(),
      boot: boot(),
    };
    return planAttempt(circumstances, patience);
  }

  #runningTime({ claims }: HeldLease): RunningTime {
    const { running_time: before } = this.#state;
    return runningTime(before ?? undefined, claims.lease_id, this.#machine.boot());
  }

  #currentSubject(): string {
    return `${this.#stamps!.key} ${this.#kept?.claims.lease_id}`;
  }

  async #renew(force: boolean): Promise<void> {
    const signal = this.#signal;
    const before = this.#state;
    const latest = { state: before, isSaved: !this.#isUnsaved };
    try {
      const read = (): Promise<License> => this.#read();
      const outcome = await renew(this.#machine, { force, signal, latest, read });
      this.#take(outcome);
      this.#faults.delete('lock');
      if (outcome.status === 'failed') {
        if (outcome.unstored !== undefined) this.#trust(outcome.unstored);
        this.#tellFailure(outcome.error);
        return;
      }
      if (outcome.status === 'renewed') {
        const { lease, accepted, refusedKeyset } = outcome;
        this.#trust({ lease, accepted });
        const { expires_at, grace_ends_at } = lease.claims;
        this.#log.info(`renewed: good until ${expires_at}, with grace until ${grace_ends_at}`);
        if (refusedKeyset === undefined)
          this.#right('keyset', 'the keys of the server are trusted again');
        else {
          const { code, reason, message } = refusedKeyset;
          const text = `the lease was renewed by the held keys, and no new key is accepted: ${message}`;
          this.#fault('keyset', String(reason), text, { code, reason });
        }
      }
      await this.#inspect();
      if (outcome.status === 'renewed') this.#seeThatItCounts(outcome.lease, before);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#faultOf('lock', 'no new lease', thrown);
    }
  }

  #take({ state, isSaved }: LatestState): void {
    [this.#state, this.#isUnsaved] = [state, !isSaved];
  }

  /** Knows a lease that came, whatever is on disk. */
  #trust({ lease, accepted }: KeptLease): void {
    [this.#kept, this.#isOutdated] = [lease, true];
    this.#acceptance.accepted = accepted;
  }

  /** To ask again at once would bring another that somebody puts away, without end. */
  #seeThatItCounts(lease: HeldLease, { failures_in_row }: DaemonState): void {
    const held = this.#kept;
    if (held?.text === lease.text) return;
    const message = `the lease that came was stored, but ${held?.path} holds another that counts`;
    const error = new ServiceError('failure', message, { reason: 'not_kept' });
    const state = { ...this.#state, failures_in_row };
    const change = failed(this.#machine, state, held?.claims, error);
    this.#take({ state: { ...state, ...change }, isSaved: false });
    this.#tellFailure(error);
  }

  /** Each attempt is told; while the disk keeps it from beginning, what is wrong is told once. */
  #tellFailure({ code, reason, message, cause }: ServiceError): void {
    const { next_attempt_at } = this.#state;
    const since = deniedSince(this.#state);
    const err = code === 'failure' ? cause : undefined;
    if (!this.#isUnsaved) this.#faults.delete('renewal');
    const text = `no new lease: ${message}; next attempt at ${next_attempt_at}`;
    this.#fault('renewal', `${code} ${reason}`, text, err ? { code, err } : { code, reason });
    if (since !== undefined) this.#faults.set('denial', since);
  }

  /** Also what another process, or the daemon before this one, was told. */
  #tellDenial(): void {
    const since = deniedSince(this.#state);
    if (since === undefined) this.#faults.delete('denial');
    else {
      const { code, message } = this.#state.last_error!;
      this.#fault('denial', since, `the server denies renewal since ${since}: ${message}`, {
        code,
      });
    }
  }

  /** Reads the license files, and repairs them from memory and from the better copy. */
  async #inspect(): Promise<void> {
    const { files, boot } = this.#machine;
    this.#isOutdated = true;
    this.#heldBackMs = undefined;
    try {
      let license = await this.#read();
      if (this.#isWrong(license)) {
        const now = boot().uptime_seconds;
        this.#repairs = this.#repairs.filter((at) => at > now - REPAIRS_WITHIN_SECONDS);
        const left =
          this.#repairs.length < MOST_REPAIRS
            ? 0
            : this.#repairs[0]! + REPAIRS_WITHIN_SECONDS - now;
        if (left > 0) this.#heldBackMs = Math.ceil(left * 1000);
        else license = await withLock(files.lock, 0, () => this.#repair());
      }
      this.#keep(license);
      this.#isOutdated = this.#isWrong(license);
      this.#unrepaired = this.#isOutdated ? this.#whatIsWrong(license) : undefined;
      this.#right('files', 'the license files are in order again');
    } catch (thrown) {
      const { reason, message } = asServiceError(thrown);
      if (reason !== 'locked') this.#unrepaired = message;
      this.#faultOf('files', 'the license files cannot be repaired', thrown);
    }
  }

  async #read(): Promise<License> {
    const isDevice = this.#stamps!.key !== MISSING;
    const now = this.#machine.clock();
    const { license, isAnnounced } = await this.#acceptance.read(this.#kept, isDevice, now);
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
    // Whoever had the lock has changed all that it was about to change.
    let license = await this.#read();
    if (!this.#isWrong(license)) return license;
    this.#repairs = [...this.#repairs, boot().uptime_seconds];
    license = await this.#repairTrust(license);
    this.#keep(license);
    await this.#repairLease(license);
    return this.#read();
  }

  /** The best of what was read and what was kept. */
  #best(license: License): HeldLease | undefined {
    const { leases, running } = license;
    const kept = this.#kept;
    const isOther = leases.every(({ text }) => text !== kept?.text);
    const all = kept && isOther && this.#isGood(kept, license) ? [...leases, kept] : [...leases];
    const [lease] = all.sort(byWorth(this.#machine.clock(), running));
    return lease;
  }

  /** Whether the kept lease verifies by the accepted keys and belongs to the accepted owner. */
  #isGood({ text, claims }: HeldLease, { trusted }: License): boolean {
    const { accepted } = this.#acceptance;
    if (accepted === undefined) return trusted !== undefined && verifyLease(text, trusted.keys).ok;
    const isOwn =
      claims.deployment_id === accepted.installationId && claims.issuer === accepted.issuer;
    return isOwn && verifyLease(text, accepted.held.keys).ok;
  }

  #keep(license: License): void {
    this.#kept = this.#best(license);
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

  /** Whether the keyset file has no keys, or the best lease works but does not verify by them. */
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
    const isThere = (path: string): boolean =>
      license.leases.some((lease) => lease.path === path && lease.text === best.text);
    // Where leases are delivered, there is one copy.
    const isBackedUp = this.#stamps!.key === MISSING || isThere(backupOf(files.lease));
    return !isThere(files.lease) || !isBackedUp;
  }

  /** Restores the anchor first, because readers of the files use the keys in it. */
  async #repairTrust(license: License): Promise<License> {
    const { files } = this.#machine;
    const { anchor, document } = this.#acceptance.accepted ?? {};
    if (anchor !== undefined && this.#needsAnchor(license)) {
      const isThere = license.anchor.kind === 'held';
      const otherwise = isThere ? 'it was older than what this machine accepted' : 'it was missing';
      const why = license.refusedAnchor?.detail ?? otherwise;
      await this.#putBack(files.root, anchor, why);
    }
    if (document === undefined || !this.#needsKeyset(license)) return license;
    const { keyset } = license;
    const why = keyset.ok ? 'no lease verifies by its keys' : keyset.detail;
    await this.#putBack(files.keyset, document, why);
    return this.#read();
  }

  async #putBack(path: string, text: string, why: string): Promise<void> {
    const bad = await quarantine(path, this.#machine.clock());
    await storeKeyset(path, text);
    this.#log.warn(
      `put ${path} back: ${why}${bad === undefined ? '' : `; the former file is kept as ${bad}`}`,
    );
  }

  async #repairLease(license: License): Promise<void> {
    if (!this.#needsLease(license)) return;
    const { files, clock } = this.#machine;
    const { text } = this.#kept!;
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

  /** Writes down what others have to know: when a lease is asked for next, and what time has passed. */
  async #save({ at, because }: Plan): Promise<void> {
    const { files, clock } = this.#machine;
    const lease = this.#kept;
    const running = lease && this.#runningTime(lease);
    // What is due is asked for now, or by another process.
    const isDueNow = isDue({ at, because }, clock());
    const changeOf = (state: DaemonState): Partial<DaemonState> => ({
      ...(!isDueNow &&
        !isNear(at, state.next_attempt_at) && {
          next_attempt_at: at === null ? null : stateTime(at),
        }),
      ...(!isDueNow && { next_attempt_because: because }),
      ...(state.failures_in_row > 0 &&
        !isFailing(state, lease?.claims) &&
        // A lease that came and is not on disk may have to be asked for again, by the same id.
        !this.#isOutdated && {
          failures_in_row: 0,
          last_error: null,
          pending: null,
        }),
      ...(running && isWorthSaving(running, state.running_time) && { running_time: running }),
      ...(this.#unrepaired !== state.unrepaired?.message && {
        unrepaired:
          this.#unrepaired === undefined
            ? null
            : { at: formatTime(clock()), message: this.#unrepaired },
      }),
    });
    const isOutdated = Object.entries(changeOf(this.#state)).some(
      ([name, value]) => this.#state[name as keyof DaemonState] !== value,
    );
    if (!isOutdated && !this.#isUnsaved) return;
    const change = (base: DaemonState): void =>
      this.#take({ state: { ...base, ...changeOf(base) }, isSaved: false });
    try {
      await withLock(files.lock, 0, async () => {
        const saved = this.#isUnsaved ? withAnnounced(files.state, this.#state) : this.#readState();
        change(await saved);
        await writeState(files.state, this.#state);
        this.#isUnsaved = false;
      });
      this.#right('state', `${files.state} is written again`);
    } catch (thrown) {
      if (asServiceError(thrown).reason === 'locked') return;
      // What cannot be written counts all the same.
      change(this.#state);
      this.#faultOf('state', 'what the daemon knows is not kept', thrown);
    }
  }

  /** Logs what is wrong, once until it is something else. */
  #fault(about: string, kind: string, text: string, data: object = {}): void {
    if (this.#faults.get(about) === kind) return;
    this.#faults.set(about, kind);
    this.#log.warn(data, text);
  }

  #faultOf(about: string, what: string, thrown: unknown): void {
    const { code, reason, message, cause } = asServiceError(thrown);
    // Whoever has the lock does the same, and the next look sees what came of it.
    if (reason === 'locked') return;
    const kind = `${code} ${reason} ${isSystemError(cause) ? cause.code : message}`;
    this.#fault(about, kind, `${what}: ${message}`, { code, reason });
  }

  #right(about: string, text: string): void {
    if (this.#faults.delete(about)) this.#log.info(text);
  }
}

/** Two clocks do not go so evenly that a moment by both would be the same to the second. */
function isNear(at: number | null, saved: string | null): boolean {
  if (at === null || saved === null) return saved === at;
  return Math.abs(Date.parse(saved) - at) < 5000;
}

function isWorthSaving(running: RunningTime, saved: RunningTime | null): boolean {
  if (running.lease_id !== saved?.lease_id || running.boot_id !== saved.boot_id) return true;
  if (running.uptime_seconds < saved.uptime_seconds) return true;
  return running.seconds - saved.seconds >= RUNNING_TIME_SECONDS;
}

const MISSING = 'missing';

async function stampsOf({ lease, keyset, root, key, state }: Machine['files']): Promise<Stamps> {
  return {
    lease: await stampOf(lease),
    backup: await stampOf(backupOf(lease)),
    keyset: await stampOf(keyset),
    root: await stampOf(root),
    key: await stampOf(key),
    state: await stampOf(state),
  };
}

async function stampOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return MISSING;
    if (isSystemError(error)) return String(error.code);
    throw error;
  }
}
