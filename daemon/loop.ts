import { setTimeout as sleep } from 'node:timers/promises';
import { withLock } from '../src/base/file-lock.ts';
import { ServiceError } from '../src/base/errors.ts';
import { statusOf, type HeldLease, type License } from '../src/gate/license.ts';
import { runningTime, type RunningTime } from '../src/lease/known-time.ts';
import type { LeaseStatus } from '../src/lease/status.ts';
import { formatTime } from '../src/lease/time.ts';
import type { Log } from '../src/base/log.ts';
import { deniedSince } from './denial.ts';
import { FaultLog } from './fault-log.ts';
import { KeptLicense } from './kept-license.ts';
import type { Machine } from './machine.ts';
import {
  isDue,
  isFailing,
  planAttempt,
  stateTime,
  type Patience,
  type Plan,
} from './plan-attempt.ts';
import { asServiceError, renew, type LatestState } from './renewal.ts';
import { MISSING, readStamps, type Stamps } from './stamps.ts';
import { changeAfterFailure } from './state-changes.ts';
import {
  NO_STATE,
  readState,
  withAnnounced,
  writeState,
  type DaemonState,
} from './daemon-state.ts';

/** Registers a callback, and returns a function that removes it. */
export type Subscribe = (call: () => void) => () => void;

export interface Tick {
  readonly state: DaemonState;
  readonly lease: HeldLease | undefined;
  readonly status: LeaseStatus | undefined;
}

export interface LoopOptions {
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Requests a check at once, which also retries after a failure without waiting: SIGHUP. */
  readonly wake?: Subscribe;
  /** Requests a check at once because lease, keyset or key may have changed. */
  readonly watch?: Subscribe;
  /** Called before each check; an error ends the loop. */
  readonly beforeCheck?: () => Promise<void>;
  /** Called after each check, at least once a minute except during a request. */
  readonly onTick?: (tick: Tick) => void;
  /** Waits; rejects or resolves early when the signal is aborted. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** Limits each wait, because the clock may be set and the machine may sleep at any time. */
const LONGEST_WAIT_MS = 60_000;

/** Renews the lease of this machine when due and repairs the license files, until `signal` is aborted. */
export async function runLoop(machine: Machine, options: LoopOptions): Promise<void> {
  const { signal, log, wake, watch, beforeCheck, onTick } = options;
  const { wait = (ms, alarm) => sleep(ms, undefined, { signal: alarm }) } = options;
  const renewal = new RenewalLoop(machine, log, signal);
  let alarm = new AbortController();
  const stopWaiting = (): void => alarm.abort();
  const removeWake = wake?.(() => {
    renewal.isImpatient = true;
    stopWaiting();
  });
  const removeWatch = watch?.(stopWaiting);
  signal.addEventListener('abort', stopWaiting);
  try {
    while (!signal.aborted) {
      alarm = new AbortController();
      await beforeCheck?.();
      const { tick, waitMs } = await renewal.check();
      onTick?.(tick);
      if (!alarm.signal.aborted && !signal.aborted) {
        await wait(waitMs, alarm.signal).catch(() => {});
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', stopWaiting);
    removeWake?.();
    removeWatch?.();
  }
}

/** Maximum running time that a power failure may lose; a lease would last that much longer. */
const RUNNING_TIME_SECONDS = 3600;

/** State of the loop between checks. */
class RenewalLoop {
  readonly #machine: Machine;
  readonly #log: Log;
  readonly #signal: AbortSignal;
  readonly #faults: FaultLog;
  readonly #license: KeptLicense;
  /** Whether to retry at once after a failure. */
  isImpatient = false;
  #stamps: Stamps | undefined;
  #state: DaemonState = NO_STATE;
  /** Whether the state is newer than its file. */
  #isUnsaved = false;
  /** Device key and lease of the last attempt: a failure does not delay the renewal of others. */
  #subject: string | undefined;

  constructor(machine: Machine, log: Log, signal: AbortSignal) {
    this.#machine = machine;
    this.#log = log;
    this.#signal = signal;
    this.#faults = new FaultLog(log);
    this.#license = new KeptLicense(machine, log, this.#faults);
  }

  /** Notices changes, repairs the license files, and renews the lease if it is due. */
  async check(): Promise<{ readonly tick: Tick; readonly waitMs: number }> {
    const { files, clock } = this.#machine;
    const before = this.#stamps;
    const stamps = await readStamps(files);
    this.#stamps = stamps;
    this.#license.isDevice = stamps.key !== MISSING;
    if (stamps.state !== before?.state && !this.#isUnsaved) {
      this.#state = await this.#readState();
    }
    const isSame = (name: keyof Stamps): boolean => stamps[name] === before?.[name];
    if (
      this.#license.isOutdated ||
      !(['lease', 'backup', 'keyset', 'root'] as const).every(isSame)
    ) {
      await this.#license.inspect();
    }

    const isNewSubject = before !== undefined && this.#subject !== this.#currentSubject();
    if (isNewSubject) this.#faults.forget('renewal');
    const isImpatient = this.isImpatient || isNewSubject;
    this.isImpatient = false;
    const plan = this.#plan(isImpatient ? 'until_due' : 'usual');
    if (isDue(plan, clock())) await this.#renew(isImpatient);
    this.#reportDenial();
    this.#subject = this.#currentSubject();
    const next = this.#plan('usual');
    if (next.because === 'not_enrolled') {
      const text = `this machine is not enrolled (${files.key} does not exist), so no lease is requested`;
      this.#faults.report('device', 'missing', text);
    } else {
      this.#faults.resolve('device', 'this machine is enrolled');
    }
    await this.#save(next);

    const { lease } = this.#license;
    const running = lease && this.#runningTime(lease);
    const status = lease && statusOf(lease, clock(), running);
    // If a lease is due and was not renewed, another process or the disk is the obstacle.
    const left = next.at === null || isDue(next, clock()) ? LONGEST_WAIT_MS : next.at - clock();
    return {
      tick: { state: this.#state, lease, status },
      waitMs: Math.min(left, this.#license.heldBackMs ?? LONGEST_WAIT_MS, LONGEST_WAIT_MS),
    };
  }

  async #readState(): Promise<DaemonState> {
    return readState(this.#machine.files.state, (why) => {
      this.#faults.report('state', why, `${why}; the file is written again from memory`);
      this.#isUnsaved = true;
      return this.#state;
    });
  }

  #plan(patience: Patience): Plan {
    const { clock, boot } = this.#machine;
    const circumstances = {
      isDevice: this.#license.isDevice,
      lease: this.#license.lease?.claims,
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
    return `${this.#stamps!.key} ${this.#license.lease?.claims.lease_id}`;
  }

  async #renew(force: boolean): Promise<void> {
    const signal = this.#signal;
    const before = this.#state;
    const latest = { state: before, isSaved: !this.#isUnsaved };
    try {
      const read = (): Promise<License> => this.#license.read();
      const outcome = await renew(this.#machine, { force, signal, latest, read });
      this.#take(outcome);
      this.#faults.forget('lock');
      if (outcome.status === 'failed') {
        if (outcome.unstored !== undefined) this.#license.keep(outcome.unstored);
        this.#reportFailure(outcome.error);
        return;
      }
      if (outcome.status === 'renewed') {
        const { lease, accepted, refusedKeyset } = outcome;
        this.#license.keep({ lease, accepted });
        const { expires_at, grace_ends_at } = lease.claims;
        this.#log.info(
          `renewed the lease: valid until ${expires_at}, with grace until ${grace_ends_at}`,
        );
        if (refusedKeyset === undefined)
          this.#faults.resolve('keyset', 'the keys of the server are trusted again');
        else {
          const { code, reason, message } = refusedKeyset;
          const text = `the lease was verified by the held keys, but the published keys were refused: ${message}`;
          this.#faults.report('keyset', String(reason), text, { code, reason });
        }
      }
      await this.#license.inspect();
      if (outcome.status === 'renewed') this.#checkInForce(outcome.lease, before);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#faults.reportError('lock', 'the lease was not renewed', thrown);
    }
  }

  #take({ state, isSaved }: LatestState): void {
    [this.#state, this.#isUnsaved] = [state, !isSaved];
    const path = this.#machine.files.state;
    if (isSaved) this.#faults.resolve('state', `${path} could be written again`);
  }

  /** Counts a stored lease that is not in force as a failure, so that it is not requested endlessly. */
  #checkInForce(lease: HeldLease, { failures_in_row }: DaemonState): void {
    const held = this.#license.lease;
    if (held?.text === lease.text) return;
    const message = `the new lease was stored, but another one, in ${held?.path}, is in force`;
    const error = new ServiceError('failure', message, { reason: 'not_kept' });
    const state = { ...this.#state, failures_in_row };
    const change = changeAfterFailure(this.#machine, state, held?.claims, error);
    this.#take({ state: { ...state, ...change }, isSaved: false });
    this.#reportFailure(error);
  }

  /** Logs each failed attempt; while the state cannot be saved, only the first of a kind. */
  #reportFailure({ code, reason, message, cause }: ServiceError): void {
    const { next_attempt_at } = this.#state;
    const since = deniedSince(this.#state);
    const err = code === 'failure' ? cause : undefined;
    if (!this.#isUnsaved) this.#faults.forget('renewal');
    const text = `the lease was not renewed: ${message}; next attempt at ${next_attempt_at}`;
    this.#faults.report(
      'renewal',
      `${code} ${reason}`,
      text,
      err ? { code, err } : { code, reason },
    );
    if (since !== undefined) this.#faults.note('denial', since);
  }

  /** Logs a denial, even if another process or an earlier daemon received it. */
  #reportDenial(): void {
    const since = deniedSince(this.#state);
    if (since === undefined) this.#faults.forget('denial');
    else {
      const { code, message } = this.#state.last_error!;
      this.#faults.report(
        'denial',
        since,
        `the server has denied renewal since ${since}: ${message}`,
        {
          code,
        },
      );
    }
  }

  /** Saves the next attempt and the running time, which other processes read. */
  async #save({ at, because }: Plan): Promise<void> {
    const { files, clock } = this.#machine;
    const { lease } = this.#license;
    const running = lease && this.#runningTime(lease);
    // A due lease is renewed now, or by another process.
    const isDueNow = isDue({ at, because }, clock());
    const changeOf = (state: DaemonState): Partial<DaemonState> => ({
      ...(!isDueNow &&
        !isNear(at, state.next_attempt_at) && {
          next_attempt_at: at === null ? null : stateTime(at),
        }),
      ...(!isDueNow && { next_attempt_because: because }),
      ...(state.failures_in_row > 0 &&
        !isFailing(state, lease?.claims) &&
        // A new lease that is not on disk may have to be requested again with the same id.
        !this.#license.isOutdated && {
          failures_in_row: 0,
          last_error: null,
          pending: null,
        }),
      ...(running && isWorthSaving(running, state.running_time) && { running_time: running }),
      ...(this.#license.unrepaired !== state.unrepaired?.message && {
        unrepaired:
          this.#license.unrepaired === undefined
            ? null
            : { at: formatTime(clock()), message: this.#license.unrepaired },
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
        this.#take({ state: this.#state, isSaved: true });
      });
    } catch (thrown) {
      if (asServiceError(thrown).reason === 'locked') return;
      // The change takes effect even if it cannot be written.
      change(this.#state);
      this.#faults.reportError('state', 'the state of the daemon could not be saved', thrown);
    }
  }
}

/** Whether two times are equal up to the drift between clock and uptime. */
function isNear(at: number | null, saved: string | null): boolean {
  if (at === null || saved === null) return saved === at;
  return Math.abs(Date.parse(saved) - at) < 5000;
}

function isWorthSaving(running: RunningTime, saved: RunningTime | null): boolean {
  if (running.lease_id !== saved?.lease_id || running.boot_id !== saved.boot_id) return true;
  if (running.uptime_seconds < saved.uptime_seconds) return true;
  return running.seconds - saved.seconds >= RUNNING_TIME_SECONDS;
}
