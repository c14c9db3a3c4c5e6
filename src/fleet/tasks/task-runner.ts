/**
 * Runs tasks of a database in threads of this process. Any number of processes can run the tasks of
 * one PostgreSQL database: each claims queued tasks, and reclaims the tasks of dead workers.
 */
import type { Log } from '../../base/log.ts';
import { notAdopted, tradingHold } from '../../storage/database-identity.ts';
import { SessionThreads } from '../../trading/host/threads/session-threads.ts';
import { NO_LIVE_MARKETS } from '../../trading/live-markets.ts';
import { isSession, type Claim } from './claim.ts';
import { recordSessionHeartbeats } from './heartbeats.ts';
import { claimTasks, recoverTask, returnToQueue } from './lifecycle.ts';
import {
  hasQueuedTask,
  listDeploymentsToEnd,
  listRunningTasks,
  listTasksOfOtherWorkers,
  listTasksToEnd,
  type HeldTask,
} from './open-tasks.ts';
import { NewerTasks } from './newer-tasks.ts';
import { OwnTasks, type OwnTask, type StopReason, type TaskLimits } from './own-tasks.ts';
import type { PaperDone } from './paper-result.ts';
import { announceWorker, removeWorker, sessionShare, type SessionShare } from './session-share.ts';
import { SilenceWatch } from './silence-watch.ts';
import {
  HEARTBEAT_EVERY_MS,
  isStorageFault,
  removeDirectory,
  TaskAttempts,
  type TestBot,
} from './task-attempt.ts';
import { ownTaskLevel } from './task-levels.ts';
import type { TaskService } from './tasks.ts';
import { hasEnded, newWorkerId, retire, workDirectory } from './worker-id.ts';

export interface RunnerOptions {
  readonly workers: number;
  readonly paperSessions: number;
  /** Longest time without progress that a strategy may take, ms. */
  readonly timeoutMs: number;
  /** Without controllers, production deployments are left to other workers. */
  readonly controllers?: DeploymentControllers | undefined;
  /** Without it, tests are left to other workers. */
  readonly testBot?: TestBot | undefined;
  readonly log: Log;
}

export interface DeploymentControllers {
  readonly most: number;
  /**
   * Controls a deployment until it has ended in the database or no longer belongs to the worker.
   * Never rejects.
   */
  readonly control: (claim: Claim, signal: AbortSignal) => ControlledDeployment;
}

export interface ControlledDeployment {
  /** Makes the controller check at once whether something must be done. */
  readonly wake: () => void;
  readonly ended: Promise<void>;
}

export interface TaskRunner {
  /** Polls at once, in addition to every second. */
  readonly wake: () => void;
  /** Stops tasks at once that another process has ended, including tasks that hang. */
  readonly release: (task_ids: readonly string[]) => void;
  /** Puts all running tasks back into the queue. */
  readonly stop: () => Promise<void>;
}

const SESSION_THREAD = new URL(`./paper-thread${import.meta.url.slice(-3)}`, import.meta.url);
const POLL_EVERY_MS = 1000;
/** Time without a new heartbeat after which a worker on another machine counts as dead. */
const DEAD_AFTER_MS = 30_000;
/** Running time after which the failures of a session are forgotten, even without any bars. */
const PROVEN_AFTER_MS = 30_000;
/** Number of tasks claimed or reclaimed in one write, so that other writes are not held up. */
const MOST_PER_WRITE = 32;

export function startTaskRunner(service: TaskService, options: RunnerOptions): TaskRunner {
  const runner = new Runner(service, options);
  return {
    wake: () => runner.wake(),
    release: (task_ids) => runner.release(task_ids),
    stop: () => runner.stop(),
  };
}

class Runner {
  readonly #service: TaskService;
  readonly #controllers: DeploymentControllers | undefined;
  readonly #log: Log;
  readonly #limits: TaskLimits;
  readonly #kinds: readonly Claim['kind'][];
  readonly #worker_id = newWorkerId();
  readonly #level = ownTaskLevel();
  readonly #newerTasks: NewerTasks;
  readonly #threads: SessionThreads<PaperDone>;
  readonly #attempts: TaskAttempts;
  readonly #share: SessionShare;
  readonly #own: OwnTasks;
  readonly #silence = new SilenceWatch();
  readonly #stopping = new AbortController();
  /** Whether other processes can run tasks of the same database. */
  readonly #isShared: boolean;
  /** Whether the database failed to answer at the last poll. */
  #isDatabaseDown = false;
  #isPollDue = false;
  #polling: Promise<void> | undefined;
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(service: TaskService, options: RunnerOptions) {
    const { workers, paperSessions, timeoutMs, controllers, testBot, log } = options;
    this.#service = service;
    this.#controllers = controllers;
    this.#log = log;
    this.#limits = {
      production: controllers?.most ?? 0,
      paper: paperSessions,
      // Before backtests, because tests are few and a person waits for them.
      conformance: testBot === undefined ? 0 : workers,
      // One at a time, because a stress test measures the machine.
      stress: testBot === undefined ? 0 : 1,
      backtest: workers,
      // One of each at a time, because each uses all threads.
      sweep: Math.min(1, workers),
      walk_forward: Math.min(1, workers),
      robustness: Math.min(1, workers),
    };
    this.#kinds = Object.keys(this.#limits) as Claim['kind'][];
    this.#threads = new SessionThreads(SESSION_THREAD, service.live ?? NO_LIVE_MARKETS);
    this.#attempts = new TaskAttempts(service, {
      threads: this.#threads,
      directory: workDirectory(this.#worker_id),
      workers,
      timeoutMs,
      testBot,
      log,
      stopping: this.#stopping.signal,
    });
    this.#share = sessionShare(service.storage, this.#worker_id, this.#limits);
    this.#own = new OwnTasks(this.#limits, workers);
    this.#isShared = service.storage.kind === 'postgres';
    this.#newerTasks = new NewerTasks(service.storage.read, this.#level, log);
    this.#timers = [
      setInterval(() => this.wake(), POLL_EVERY_MS),
      setInterval(() => void this.#sendHeartbeats(), HEARTBEAT_EVERY_MS),
    ];
    // Announced before the first poll, so that other workers leave a share for this one.
    void this.#sendHeartbeats().then(() => this.wake());
  }

  wake(): void {
    this.#isPollDue = true;
    this.#polling ??= this.#pollWhileDue();
  }

  release(task_ids: readonly string[]): void {
    for (const task_id of task_ids) this.#own.get(task_id)?.stop('not_ours');
  }

  async stop(): Promise<void> {
    const [pollTimer, heartbeatTimer] = this.#timers;
    clearInterval(pollTimer);
    this.#stopping.abort();
    await this.#polling;
    const removing = this.#isShared ? this.#removeWorker() : undefined;
    const open = [...this.#own.values()];
    for (const { stop } of open) stop('server_stops');
    await Promise.all(open.map(({ ended }) => ended));
    clearInterval(heartbeatTimer);
    await removing;
    await this.#threads.close();
    await removeDirectory(workDirectory(this.#worker_id));
    retire(this.#worker_id);
  }

  async #pollWhileDue(): Promise<void> {
    while (this.#isPollDue && !this.#stopping.signal.aborted) {
      this.#isPollDue = false;
      try {
        await this.#poll();
      } catch (error) {
        if (isStorageFault(error)) this.#isDatabaseDown = true;
        this.#log.warn({ err: error, msg: 'the queue of tasks cannot be read' });
      }
    }
    this.#polling = undefined;
  }

  async #poll(): Promise<void> {
    const { read } = this.#service.storage;
    for (const { task_id, isCanceled } of await listTasksToEnd(read, this.#worker_id)) {
      const own = this.#own.get(task_id);
      if (isCanceled) own?.stop('canceled');
      else own?.wrapUp();
    }
    await this.#releaseUnknownClaims();
    if (this.#isDatabaseDown) {
      this.#silence.reset();
      this.#share.reset();
      this.#isDatabaseDown = false;
    }
    await this.#releaseUnadopted();
    if (this.#own.count('production') > 0) {
      const deployments = await listDeploymentsToEnd(read, this.#worker_id);
      for (const task_id of deployments) this.#own.get(task_id)?.wrapUp();
    }
    for (const [worker_id, tasks] of await this.#findDeadWorkers()) {
      await this.#reclaim(worker_id, tasks);
    }
    for (const kind of this.#kinds) await this.#claimQueued(kind);
    if (this.#isShared) await this.#newerTasks.check();
  }

  /**
   * Releases tasks that this worker claims but does not run: the answer to its claim was lost, or a halt
   * stopped the records of a session but could not end its task.
   */
  async #releaseUnknownClaims(): Promise<void> {
    const { storage, clock } = this.#service;
    const silentSince = this.#isDatabaseDown ? undefined : clock() - DEAD_AFTER_MS;
    for (const task of await listRunningTasks(storage.read, this.#worker_id, silentSince)) {
      if (this.#own.has(task.task_id)) continue;
      await storage.write((tx) => returnToQueue(tx, task, clock(), 'claim_lost'));
    }
  }

  /** Releases the paper sessions while a copy of the database is not adopted and must not trade. */
  async #releaseUnadopted(): Promise<void> {
    const sessions = this.#own.ofKind((kind) => kind === 'paper');
    if (sessions.length === 0) return;
    const hold = await tradingHold(this.#service.storage.read);
    if (hold === undefined) return;
    const { message } = notAdopted(hold);
    this.#log.warn(`${sessions.length} paper sessions return to the queue: ${message}`);
    for (const { stop } of sessions) stop('not_adopted');
  }

  /** Tasks by worker, of workers that have ended or have sent no heartbeat for too long. */
  async #findDeadWorkers(): Promise<ReadonlyMap<string, readonly HeldTask[]>> {
    const held = await listTasksOfOtherWorkers(this.#service.storage.read, this.#worker_id);
    const heartbeats = held.map((one) => [one.task_id, heartbeatOf(one)] as const);
    const silentFor = this.#silence.observe(new Map(heartbeats));
    const dead = held.filter(
      (one) => hasEnded(one.worker_id) || silentFor.get(one.task_id)! > DEAD_AFTER_MS,
    );
    return Map.groupBy(dead, (one) => one.worker_id);
  }

  async #reclaim(worker_id: string, dead: readonly HeldTask[]): Promise<void> {
    const { storage, clock } = this.#service;
    const seen = new Map(dead.map((one) => [one.task_id, heartbeatOf(one)]));
    const tasks = (await listRunningTasks(storage.read, worker_id)).filter(
      (task) => !this.#own.has(task.task_id) && seen.get(task.task_id) === heartbeatOf(task),
    );
    if (tasks.length > 0) {
      this.#log.warn(`the worker ${worker_id} is dead; ${tasks.length} of its tasks restart`);
    }
    for (let done = 0; done < tasks.length; done += MOST_PER_WRITE) {
      const some = tasks.slice(done, done + MOST_PER_WRITE);
      await storage.write(async (tx) => {
        for (const task of some) await recoverTask(tx, task, clock());
      });
    }
    if (hasEnded(worker_id)) await removeDirectory(workDirectory(worker_id));
  }

  async #claimQueued(kind: Claim['kind']): Promise<void> {
    const { storage, clock } = this.#service;
    let free: number;
    while (
      (free = this.#own.free(kind)) > 0 &&
      (await hasQueuedTask(storage.read, kind, this.#level))
    ) {
      if ((await storage.schemaFault()) !== undefined) return;
      if (this.#stopping.signal.aborted) return;
      const most = isSession(kind)
        ? Math.min(free, MOST_PER_WRITE, (await this.#share.most(kind)) - this.#own.count(kind))
        : 1;
      // Other workers claim the rest.
      if (most <= 0) return;
      const claims = await storage.write((tx) =>
        claimTasks(tx, clock(), this.#worker_id, kind, most, this.#level),
      );
      for (const claim of claims) this.#start(claim);
    }
    this.#share.noneWaits(kind);
  }

  #start(claim: Claim): void {
    const { task_id, kind } = claim;
    const stop = new AbortController();
    if (this.#stopping.signal.aborted) stop.abort('server_stops' satisfies StopReason);
    const wrapUp = new AbortController();
    const started: ControlledDeployment =
      kind === 'production'
        ? this.#startController(claim, stop.signal)
        : {
            wake: () => wrapUp.abort(),
            ended: this.#attempts.perform(claim, { stop, wrapUp: wrapUp.signal }),
          };
    const ended = started.ended
      .catch((error: unknown) => {
        this.#log.error({ err: error, msg: `the outcome of task ${task_id} cannot be recorded` });
      })
      .finally(() => {
        // Unless this worker has claimed the task again in the meantime.
        if (this.#own.get(task_id) === own) this.#own.delete(task_id);
        this.wake();
      });
    const own: OwnTask = {
      claim,
      startedAt: performance.now(),
      stop: (reason) => stop.abort(reason),
      wrapUp: started.wake,
      ended,
    };
    this.#own.set(task_id, own);
  }

  #startController(claim: Claim, signal: AbortSignal): ControlledDeployment {
    const { storage, clock } = this.#service;
    const { wake, ended } = this.#controllers!.control(claim, signal);
    const release = async (): Promise<void> => {
      await ended;
      if ((signal.reason as StopReason) !== 'server_stops') return;
      await storage.write((tx) => returnToQueue(tx, claim, clock(), 'server_stopped'));
    };
    return { wake, ended: release() };
  }

  /** Sends heartbeats for this worker and its sessions, and stops sessions that others have claimed. */
  async #sendHeartbeats(): Promise<void> {
    const { storage, clock } = this.#service;
    const sessions = this.#own.ofKind(isSession);
    if (sessions.length === 0 && !this.#isShared) return;
    const now = performance.now();
    const claims = sessions.map(({ claim, startedAt }) => {
      const ms = now - startedAt;
      const isProven = ms >= PROVEN_AFTER_MS && ms < PROVEN_AFTER_MS + 2 * HEARTBEAT_EVERY_MS;
      return { claim, isProven };
    });
    try {
      const held = await storage.write(async (tx) => {
        const isStaying = this.#isShared && !this.#stopping.signal.aborted;
        if (isStaying) await announceWorker(tx, clock(), this.#worker_id, this.#limits);
        return recordSessionHeartbeats(tx, clock(), this.#worker_id, claims);
      });
      const lost = sessions.filter(({ claim }) => !held.has(claim.task_id));
      for (const { stop } of lost) stop('not_ours');
    } catch (error) {
      this.#log.warn({ err: error, msg: 'the heartbeats of the sessions cannot be written' });
    }
  }

  /** Removes this worker, so that others can take its share. */
  async #removeWorker(): Promise<void> {
    const { storage, clock } = this.#service;
    try {
      await storage.write((tx) => removeWorker(tx, clock(), this.#worker_id));
    } catch (error) {
      this.#log.warn({
        err: error,
        msg: 'other workers reserve a share for this one for ten seconds',
      });
    }
  }
}

/** A value that changes with each heartbeat of a worker, and differs between workers. */
function heartbeatOf({ worker_id, heartbeat_at }: HeldTask): string {
  return `${worker_id} ${heartbeat_at}`;
}
