/**
 * Works on the tasks of a database, in threads of this process. Any number of processes can do so on
 * one PostgreSQL: each takes what nobody has taken, and looks after what dead ones have left.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { getRunnableVersion, type RunnableVersion } from '../registry/versions.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { readFigure, type FigureName } from '../../base/run-figures.ts';
import { watchSupervision } from '../thresholds/read-supervision.ts';
import { notAdopted, tradingHold } from '../../storage/database-identity.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { BacktestDone, BacktestWork } from './backtest-work.ts';
import { isSession, type Claim } from './claim.ts';
import { storeFile } from './task-files.ts';
import {
  recordHeartbeat,
  recordSessionHeartbeats,
  claimTasks,
  listDeploymentsToEnd,
  finishTask,
  returnToQueue,
  hasQueuedTask,
  recoverTask,
  retryTask,
  listRunningTasks,
  listTasksOfOtherWorkers,
  listTasksToEnd,
  type HeldTask,
  type Progress,
  type TaskOutcome,
} from './lifecycle.ts';
import { startSessionHosts } from './paper-hosts.ts';
import type { PaperDone, PaperWork } from './paper-session.ts';
import type { PaperInput } from './paper.ts';
import { readSession, recordBatch, type Batch } from './session-record.ts';
import { recordedInputs } from '../../trading/recorded-bars.ts';
import { SilenceWatch } from './silence-watch.ts';
import { toErrorData } from '../../base/error-data.ts';
import type { BacktestInput, TaskService } from './tasks.ts';
import { runBacktestThread, TaskFailure, ThreadDied } from './backtest-thread.ts';
import { findFirstLock } from './verify-lock.ts';
import { hasEnded, newWorkerId, retire, workDirectory } from './worker-id.ts';
import { announceWorker, removeWorker, sessionShare } from './session-share.ts';

export interface RunnerOptions {
  /** Backtests at a time, at least 1. */
  readonly workers: number;
  /** Paper sessions at a time, at least 1. */
  readonly paperSessions: number;
  /** Longest time a strategy may keep a run from going on, ms. */
  readonly timeoutMs: number;
  /** Who looks after production deployments; without, others do. */
  readonly controllers?: DeploymentControllers | undefined;
  /** Tests bots; without, others do. */
  readonly testBot?: TestBot | undefined;
  readonly log: Log;
}

export interface DeploymentControllers {
  /** Deployments at a time, at least 1. */
  readonly most: number;
  /**
   * Looks after a deployment until it has ended, in the database, too, or is not the worker's any
   * more. Never rejects.
   */
  readonly control: (claim: Claim, signal: AbortSignal) => ControlledDeployment;
}

export interface ControlledDeployment {
  /** Has it look at once whether something is to be done. */
  readonly wake: () => void;
  readonly ended: Promise<void>;
}

/**
 * Does a conformance or a stress test, and leaves its files as `<name>.gz` in the directory.
 * @throws TaskFailure; ServiceError; whatever `signal` was aborted with.
 */
export type TestBot = (
  claim: Claim,
  tested: RunnableVersion,
  surroundings: {
    readonly directory: string;
    readonly signal: AbortSignal;
    readonly onProgress: (progress: Progress) => void;
    /** Has the database asked again until it answers. */
    readonly persist: <T>(access: () => Promise<T>) => Promise<T>;
  },
) => Promise<TaskDone>;

/** What came of a task. */
interface TaskDone {
  readonly result: object;
  /** What events and lists tell of it. */
  readonly summary: Readonly<Record<string, unknown>>;
  readonly files: readonly string[];
}

export interface TaskRunner {
  /** Looks at once for what is to be done, as it does every second. */
  readonly wake: () => void;
  /** Lets go at once of tasks that others have ended, also of those that hang. */
  readonly release: (task_ids: readonly string[]) => void;
  /** Gives back what it is at. */
  readonly stop: () => Promise<void>;
}

const LOOK_EVERY_MS = 1000;
const BEAT_EVERY_MS = 2000;
/** Time without a new heartbeat after which a worker on another machine counts as dead. */
const DEAD_AFTER_MS = 30_000;
/** So long at it, a session has come to something, though its market may stand still. */
const PROVEN_AFTER_MS = 30_000;
/** So many are begun, or taken from who is dead, in one write: little enough that others get turns. */
const MOST_AT_ONCE = 32;
/** Of the steps of a task: so many more make an event. */
const TOLD_SHARE = 1 / 4;

/** Why a task is not gone on with. */
type StopReason = 'canceled' | 'server_stops' | 'not_ours' | 'not_adopted';

/** Why a task is given back that was stopped so; the others are left as they are. */
const GIVEN_BACK: Readonly<Partial<Record<StopReason, 'server_stopped' | 'database_not_adopted'>>> =
  { server_stops: 'server_stopped', not_adopted: 'database_not_adopted' };

interface Running {
  readonly claim: Claim;
  readonly begun: number;
  readonly stop: (reason: StopReason) => void;
  /** Has a paper session end with what it has come to, and a controller see what is wanted. */
  readonly wrapUp: () => void;
  readonly ended: Promise<void>;
}

/** Who takes a task from its worker, and when it wants to end. */
interface Ends {
  readonly stop: AbortController;
  readonly wrapUp: AbortSignal;
}

/** A batch was refused: somebody else has the task, or is about to end it. */
class NotOurs extends Error {}

export function startTaskRunner(service: TaskService, options: RunnerOptions): TaskRunner {
  const { storage, clock, catalogueDir } = service;
  const { workers, paperSessions, timeoutMs, controllers, testBot, log } = options;
  const limits = {
    production: controllers?.most ?? 0,
    paper: paperSessions,
    // Somebody waits for a test, of which there are few; and one of stress measures the machine.
    conformance: testBot === undefined ? 0 : workers,
    stress: testBot === undefined ? 0 : 1,
    backtest: workers,
  } as const;
  const kinds = Object.keys(limits) as readonly Claim['kind'][];
  const hosts = startSessionHosts(service.live);
  const readSupervision = watchSupervision(storage.read, clock);
  const worker_id = newWorkerId();
  const fairShare = sessionShare(storage, worker_id, limits);
  const running = new Map<string, Running>();
  const stopping = new AbortController();

  /** Whether the database failed to answer at the last poll. */
  let isOut = false;
  const silence = new SilenceWatch();
  /** The tasks whose workers have ended, or have not been heard of for too long, by worker. */
  const tasksOfDead = async (): Promise<ReadonlyMap<string, readonly HeldTask[]>> => {
    const held = await listTasksOfOtherWorkers(storage.read, worker_id);
    const heartbeats = held.map((one) => [one.task_id, heartbeatOf(one)] as const);
    const silentFor = silence.observe(new Map(heartbeats));
    const dead = held.filter(
      (one) => hasEnded(one.worker_id) || silentFor.get(one.task_id)! > DEAD_AFTER_MS,
    );
    return Map.groupBy(dead, (one) => one.worker_id);
  };
  const countOf = (kind: Claim['kind']): number =>
    [...running.values()].filter(({ claim }) => claim.kind === kind).length;

  /** How many more of a kind can be begun. */
  const freeFor = (kind: Claim['kind']): number => {
    const free = limits[kind] - countOf(kind);
    if (isSession(kind)) return free;
    const threads = kinds.filter((one) => !isSession(one)).map(countOf);
    return Math.min(free, workers - threads.reduce((sum, count) => sum + count, 0));
  };

  const look = async (): Promise<void> => {
    for (const { task_id, isCanceled } of await listTasksToEnd(storage.read, worker_id)) {
      const own = running.get(task_id);
      if (isCanceled) own?.stop('canceled');
      else own?.wrapUp();
    }
    if (isOut) {
      await returnDropped();
      silence.reset();
      fairShare.reset();
      isOut = false;
    }
    await leaveHeld();
    if (countOf('production') > 0) {
      const wanted = await listDeploymentsToEnd(storage.read, worker_id);
      for (const task_id of wanted) running.get(task_id)?.wrapUp();
    }
    for (const [who, tasks] of await tasksOfDead()) await takeFrom(who, tasks);
    for (const kind of kinds) await takeWaiting(kind);
  };

  /** Gives back the paper sessions here while nothing may trade by the database. */
  const leaveHeld = async (): Promise<void> => {
    const sessions = [...running.values()].filter(({ claim }) => claim.kind === 'paper');
    if (sessions.length === 0) return;
    const hold = await tradingHold(storage.read);
    if (hold === undefined) return;
    log.warn(`${sessions.length} paper sessions are given back: ${notAdopted(hold).message}`);
    for (const { stop } of sessions) stop('not_adopted');
  };

  const takeWaiting = async (kind: Claim['kind']): Promise<void> => {
    let free: number;
    while ((free = freeFor(kind)) > 0 && (await hasQueuedTask(storage.read, kind))) {
      if (stopping.signal.aborted) return;
      const most = isSession(kind)
        ? Math.min(free, MOST_AT_ONCE, (await fairShare.most(kind)) - countOf(kind))
        : 1;
      // Other workers take the rest.
      if (most <= 0) return;
      const claims = await storage.write((tx) => claimTasks(tx, clock(), worker_id, kind, most));
      for (const claim of claims) begin(claim);
    }
    fairShare.noneWaits(kind);
  };

  /**
   * Releases tasks that this worker has claimed without knowing it, because the answer to its claim
   * was lost.
   */
  const returnDropped = async (): Promise<void> => {
    const own = await listRunningTasks(storage.read, worker_id);
    for (const task of own) {
      if (running.has(task.task_id)) continue;
      await storage.write((tx) => returnToQueue(tx, task, clock(), 'claim_lost'));
    }
  };

  const takeFrom = async (who: string, dead: readonly HeldTask[]): Promise<void> => {
    const seen = new Map(dead.map((one) => [one.task_id, heartbeatOf(one)]));
    const tasks = (await listRunningTasks(storage.read, who)).filter(
      (task) => !running.has(task.task_id) && seen.get(task.task_id) === heartbeatOf(task),
    );
    if (tasks.length > 0) {
      log.warn(`${who} is dead: its tasks are begun anew, ${tasks.length} of them`);
    }
    for (let done = 0; done < tasks.length; done += MOST_AT_ONCE) {
      const some = tasks.slice(done, done + MOST_AT_ONCE);
      await storage.write(async (tx) => {
        for (const task of some) await recoverTask(tx, task, clock());
      });
    }
    if (hasEnded(who)) await remove(workDirectory(who));
  };

  const begin = (claim: Claim): void => {
    const stop = new AbortController();
    if (stopping.signal.aborted) stop.abort('server_stops' satisfies StopReason);
    const wrapUp = new AbortController();
    const at: ControlledDeployment =
      claim.kind === 'production'
        ? conduct(claim, stop.signal)
        : {
            wake: () => wrapUp.abort(),
            ended: work(claim, { stop, wrapUp: wrapUp.signal }),
          };
    const ended = at.ended
      .catch((error: unknown) => {
        log.error({ err: error, msg: `task ${claim.task_id} could not be seen to its end` });
      })
      .finally(() => {
        // The task may have been claimed again meanwhile.
        if (running.get(claim.task_id) === own) running.delete(claim.task_id);
        wake();
      });
    const own: Running = {
      claim,
      begun: performance.now(),
      stop: (reason) => stop.abort(reason),
      wrapUp: at.wake,
      ended,
    };
    running.set(claim.task_id, own);
  };

  const conduct = (claim: Claim, signal: AbortSignal): ControlledDeployment => {
    const controlled = controllers!.control(claim, signal);
    const leave = async (): Promise<void> => {
      await controlled.ended;
      if ((signal.reason as StopReason) !== 'server_stops') return;
      await storage.write((tx) => returnToQueue(tx, claim, clock(), 'server_stopped'));
    };
    return { wake: controlled.wake, ended: leave() };
  };

  /** From its claim to whatever becomes of it. */
  const work = async (claim: Claim, ends: Ends): Promise<void> => {
    const { signal } = ends.stop;
    let progress: Progress | undefined;
    const isPaper = claim.kind === 'paper';
    const beating = isPaper ? undefined : keepBeating(claim, ends.stop, () => progress);
    const directory = join(workDirectory(worker_id), claim.task_id);
    try {
      const outcome = await attempt(claim, ends, directory, (made) => (progress = made)).finally(
        // Before the task is released: its next attempt may be made here, too.
        () => remove(directory),
      );
      if (outcome !== undefined) {
        await persist(() =>
          storage.write((tx) => finishTask(tx, claim, clock(), outcome, progress)),
        );
      } else {
        const reason = GIVEN_BACK[signal.reason as StopReason];
        if (reason === undefined) return;
        await storage.write((tx) => returnToQueue(tx, claim, clock(), reason));
      }
    } catch (error) {
      if (error instanceof NotOurs) return;
      await leave(claim, error);
    } finally {
      clearInterval(beating);
    }
  };

  /** Releases a task that could not be finished here, so that it restarts at once. */
  const leave = async (claim: Claim, error: unknown): Promise<void> => {
    const { task_id } = claim;
    if (isStorageFault(error)) {
      log.warn({ err: error, msg: `task ${task_id} is released: the database does not answer` });
      await persist(() =>
        storage.write((tx) => returnToQueue(tx, claim, clock(), 'storage_unavailable')),
      );
      return;
    }
    if (error instanceof ThreadDied) {
      log.warn(`paper session ${task_id} begins again: ${error.message}`);
    } else {
      log.error({ err: error, msg: `task ${task_id} restarts after an unexpected error` });
    }
    await persist(() => storage.write((tx) => retryTask(tx, claim, clock())));
  };

  /** @returns undefined when it is to be left as it is, or given back. */
  const attempt = async (
    claim: Claim,
    { stop: { signal }, wrapUp }: Ends,
    directory: string,
    onProgress: (progress: Progress) => void,
  ): Promise<TaskOutcome | undefined> => {
    const { task_id: runId, bot_id, version } = claim;
    try {
      const runnable = await persist(() => getRunnableVersion(service, bot_id, version));
      const code = { ...runnable, customCode: service.customCode };
      const asked = { runId, ...code, catalogueDir, timeoutMs, directory };
      const done =
        claim.kind === 'paper'
          ? await trade(claim, asked, signal, wrapUp)
          : claim.kind === 'backtest'
            ? await backtest(claim, asked, signal, onProgress)
            : await testBot!(claim, runnable, { directory, signal, onProgress, persist });
      if (done === undefined) return { status: 'canceled' };
      for (const name of done.files) {
        const path = join(directory, `${name}.gz`);
        const isKept = await persist(() => storeFile(storage, claim, name, path, signal));
        if (!isKept) return undefined;
      }
      return { status: 'success', result: JSON.stringify(done.result), summary: done.summary };
    } catch (error) {
      if (signal.aborted) {
        return (signal.reason as StopReason) === 'canceled' ? { status: 'canceled' } : undefined;
      }
      // A version that is not to be run.
      if (error instanceof ServiceError && !error.retryable) {
        return { status: 'failed', error: toErrorData(error).error };
      }
      if (!(error instanceof TaskFailure)) throw error;
      if (error.cause !== undefined) log.error({ err: error, msg: `task ${runId} failed` });
      return { status: 'failed', error: error.error };
    }
  };

  const backtest = async (
    claim: Claim,
    asked: Omit<BacktestWork, 'changes' | 'locked'>,
    signal: AbortSignal,
    onProgress: (progress: Progress) => void,
  ): Promise<TaskDone> => {
    const { verify_lock, ...changes } = JSON.parse(claim.input) as BacktestInput;
    const locked = verify_lock
      ? await persist(() => findFirstLock(storage.read, claim, changes))
      : undefined;
    return doneOf(await runBacktestThread({ ...asked, changes, locked }, signal, onProgress));
  };

  /** A paper session, from what was recorded of it. */
  const trade = async (
    claim: Claim,
    asked: Omit<PaperWork, 'input' | 'recorded'>,
    gone: AbortSignal,
    wrapUp: AbortSignal,
  ): Promise<TaskDone | undefined> => {
    const { task_id } = claim;
    const { batches, steps, state } = await persist(() => readSession(storage.read, task_id));
    const recorded = { batches, steps, state: JSON.parse(state) as SessionState };
    const input = JSON.parse(claim.input) as PaperInput;
    const read = recordedInputs(storage.read, claim);
    let written: Promise<void> = Promise.resolve();
    const record = async (batch: Batch): Promise<void> => {
      const isOurs = await persist(() =>
        storage.write((tx) => recordBatch(tx, claim, clock(), batch)),
      );
      if (!isOurs) throw new NotOurs(`${task_id} is not this worker's any more`);
    };
    const done = await hosts.run(
      { ...asked, input, recorded },
      {
        steps: () => persist(read),
        readSupervision: () => persist(() => readSupervision(task_id)),
        // One after the other: each follows from the one before.
        record: (batch) => (written = written.then(() => record(batch))),
        stop: wrapUp,
        gone,
      },
    );
    return done && doneOf(done);
  };

  /** Other processes can work on the same tasks. */
  const isShared = storage.kind === 'postgres';

  /**
   * Sends heartbeats for this worker's sessions, and stops sessions that other workers have
   * claimed.
   */
  const beatForSessions = async (): Promise<void> => {
    const sessions = [...running.values()].filter(({ claim }) => isSession(claim.kind));
    if (sessions.length === 0 && !isShared) return;
    const now = performance.now();
    const claims = sessions.map(({ claim, begun }) => {
      const ms = now - begun;
      const isProven = ms >= PROVEN_AFTER_MS && ms < PROVEN_AFTER_MS + 2 * BEAT_EVERY_MS;
      return { claim, isProven };
    });
    try {
      const held = await storage.write(async (tx) => {
        const isStaying = isShared && !stopping.signal.aborted;
        if (isStaying) await announceWorker(tx, clock(), worker_id, limits);
        return recordSessionHeartbeats(tx, clock(), worker_id, claims);
      });
      const lost = sessions.filter(({ claim }) => !held.has(claim.task_id));
      for (const { stop } of lost) stop('not_ours');
      // It may be for that that another server has halted them.
      if (lost.length > 0) hosts.endHung();
    } catch (error) {
      log.warn({ err: error, msg: 'nobody hears of the sessions' });
    }
  };

  /** Removes this worker, so that others can take its share. */
  const leaveOthers = async (): Promise<void> => {
    try {
      await storage.write((tx) => removeWorker(tx, clock(), worker_id));
    } catch (error) {
      log.warn({ err: error, msg: 'other workers reserve a share for this one for ten seconds' });
    }
  };

  const keepBeating = (
    claim: Claim,
    stop: AbortController,
    progressOf: () => Progress | undefined,
  ): NodeJS.Timeout => {
    let told = 0;
    return setInterval(() => {
      const progress = progressOf();
      const share = progress === undefined ? 0 : progress.done / progress.total;
      const isNews = share < 1 && share - told >= TOLD_SHARE;
      if (isNews) told = share;
      storage
        .write((tx) => recordHeartbeat(tx, claim, clock(), progress, isNews))
        .then(
          (isOurs) => isOurs || stop.abort('not_ours' satisfies StopReason),
          (error: unknown) => log.warn({ err: error, msg: `nobody hears of ${claim.task_id}` }),
        );
    }, BEAT_EVERY_MS);
  };

  /** Goes on trying while the database does not answer. */
  const persist = async <T>(access: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await access();
      } catch (error) {
        const isTransient = error instanceof ServiceError && error.retryable;
        if (!isTransient || stopping.signal.aborted) throw error;
        await wait(LOOK_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
  };

  let isAsked = false;
  let looking: Promise<void> | undefined;
  const wake = (): void => {
    isAsked = true;
    looking ??= lookWhileAsked();
  };
  const lookWhileAsked = async (): Promise<void> => {
    while (isAsked && !stopping.signal.aborted) {
      isAsked = false;
      try {
        await look();
      } catch (error) {
        if (isStorageFault(error)) isOut = true;
        log.warn({ err: error, msg: 'tasks cannot be looked for' });
      }
    }
    looking = undefined;
  };
  const timer = setInterval(wake, LOOK_EVERY_MS);
  const beatingForSessions = setInterval(() => void beatForSessions(), BEAT_EVERY_MS);
  // Announced before the first poll, so that other workers leave a share for this one.
  void beatForSessions().then(wake);
  return {
    wake,
    release(task_ids) {
      for (const task_id of task_ids) running.get(task_id)?.stop('not_ours');
      hosts.endHung();
    },
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await looking;
      const leaving = isShared ? leaveOthers() : undefined;
      const open = [...running.values()];
      for (const { stop } of open) stop('server_stops');
      await Promise.all(open.map(({ ended }) => ended));
      clearInterval(beatingForSessions);
      await leaving;
      await hosts.close();
      await remove(workDirectory(worker_id));
      retire(worker_id);
    },
  };
}

/** A value that is another after each report of a worker, and for each worker. */
function heartbeatOf({ worker_id, heartbeat_at }: HeldTask): string {
  return `${worker_id} ${heartbeat_at}`;
}

/** Whether the database did not answer, which is no failure of a task or of its bot. */
function isStorageFault(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'storage_unavailable';
}

/** A directory that cannot be removed does not invalidate the result. */
async function remove(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true }).catch(() => {});
}

/** Of a run over bars. */
function doneOf(done: BacktestDone | PaperDone): TaskDone {
  const { summary, files } = done;
  return { result: summary, summary: digestOf(done), files };
}

const DIGEST_FIGURES = [
  'total_return',
  'cagr',
  'sharpe',
  'max_drawdown',
  'trades',
  'end_equity',
] as const satisfies readonly FigureName[];

/** What events and lists tell of a result. */
function digestOf(done: BacktestDone | PaperDone): Readonly<Record<string, unknown>> {
  const { summary, notes } = done;
  const { window, gates, hashes } = summary;
  return {
    metrics: Object.fromEntries(DIGEST_FIGURES.map((name) => [name, readFigure(summary, name)])),
    gates: { met: gates.filter(({ pass }) => pass).length, total: gates.length },
    window,
    hashes,
    notes,
    ...('stopped' in done && done.stopped && { stopped: true }),
  };
}
