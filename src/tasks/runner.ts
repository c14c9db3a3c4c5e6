/**
 * Works on the tasks of a database, in threads of this process. Any number of processes can do so on
 * one PostgreSQL: each takes what nobody has taken, and looks after what dead ones have left.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { getVersion } from '../bot-registry/versions.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { BacktestDone } from './backtest-work.ts';
import { storeFile } from './files.ts';
import {
  beat,
  claimTask,
  finishTask,
  giveBack,
  isWaiting,
  recoverTask,
  runningTasks,
  type Claim,
  type Progress,
  type RunningTask,
  type TaskOutcome,
} from './lifecycle.ts';
import type { BacktestInput, TaskService } from './tasks.ts';
import { runThread, TaskFailure } from './thread.ts';
import { firstLock } from './verify-lock.ts';
import { hasEnded, newWorkerId, retire, workDirectory } from './worker-id.ts';

export interface RunnerOptions {
  /** Tasks at a time, at least 1. */
  readonly workers: number;
  /** Longest time a strategy may keep a run from going on, ms. */
  readonly timeoutMs: number;
  readonly log: Log;
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
/** Of a worker on another machine; on this one it can be seen whether it is there. */
const DEAD_AFTER_MS = 30_000;
/** Of the steps of a task: so many more make an event. */
const TOLD_SHARE = 1 / 4;

/** Why a task is not gone on with. */
type StopReason = 'canceled' | 'server_stops' | 'not_ours';

interface Running {
  readonly stop: (reason: StopReason) => void;
  readonly ended: Promise<void>;
}

export function startTaskRunner(service: TaskService, options: RunnerOptions): TaskRunner {
  const { storage, clock, catalogueDir } = service;
  const { workers, timeoutMs, log } = options;
  const worker_id = newWorkerId();
  const running = new Map<string, Running>();
  const stopping = new AbortController();

  const isDead = (task: RunningTask): boolean =>
    hasEnded(task.worker_id) || clock() - task.heartbeat_at > DEAD_AFTER_MS;

  const look = async (): Promise<void> => {
    for (const task of await runningTasks(storage.read)) {
      const own = running.get(task.task_id);
      if (own !== undefined) {
        if (task.cancel_requested_at !== null) own.stop('canceled');
      } else if (isDead(task)) {
        log.warn(`the worker of task ${task.task_id}, ${task.worker_id}, is dead`);
        await storage.write((tx) => recoverTask(tx, task, clock()));
        if (hasEnded(task.worker_id)) await remove(workDirectory(task.worker_id));
      }
    }
    while (running.size < workers && (await isWaiting(storage.read))) {
      if (stopping.signal.aborted) return;
      const claim = await storage.write((tx) => claimTask(tx, clock(), worker_id));
      if (claim !== undefined) begin(claim);
    }
  };

  const begin = (claim: Claim): void => {
    const stop = new AbortController();
    if (stopping.signal.aborted) stop.abort('server_stops' satisfies StopReason);
    const ended = work(claim, stop)
      .catch((error: unknown) => {
        log.error({ err: error, msg: `task ${claim.task_id} could not be seen to its end` });
      })
      .finally(() => {
        running.delete(claim.task_id);
        wake();
      });
    running.set(claim.task_id, { stop: (reason) => stop.abort(reason), ended });
  };

  /** From its claim to whatever becomes of it. */
  const work = async (claim: Claim, stop: AbortController): Promise<void> => {
    const { signal } = stop;
    let progress: Progress | undefined;
    const beating = keepBeating(claim, stop, () => progress);
    const directory = join(workDirectory(worker_id), claim.task_id);
    try {
      const outcome = await attempt(claim, signal, directory, (made) => (progress = made));
      if (outcome !== undefined) {
        await persist(() =>
          storage.write((tx) => finishTask(tx, claim, clock(), outcome, progress)),
        );
      } else if ((signal.reason as StopReason) === 'server_stops') {
        await storage.write((tx) => giveBack(tx, claim, clock()));
      }
    } finally {
      clearInterval(beating);
      await remove(directory);
    }
  };

  /** @returns undefined when it is to be left as it is, or given back. */
  const attempt = async (
    claim: Claim,
    signal: AbortSignal,
    directory: string,
    onProgress: (progress: Progress) => void,
  ): Promise<TaskOutcome | undefined> => {
    const { task_id: runId, bot_id, version, input } = claim;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const { document: text } = await persist(() => getVersion(storage.read, bot_id, version));
      const document: unknown = JSON.parse(text);
      const { verify_lock, ...changes } = JSON.parse(input) as BacktestInput;
      const locked = verify_lock
        ? await persist(() => firstLock(storage.read, claim, changes))
        : undefined;
      const asked = { runId, document, changes, locked, catalogueDir, timeoutMs, directory };
      const done = await runThread(asked, signal, onProgress);
      for (const name of done.files) {
        const path = join(directory, `${name}.gz`);
        const isKept = await persist(() => storeFile(storage, claim, name, path, signal));
        if (!isKept) return undefined;
      }
      return { status: 'success', result: JSON.stringify(done.summary), summary: digestOf(done) };
    } catch (error) {
      if (signal.aborted) {
        return (signal.reason as StopReason) === 'canceled' ? { status: 'canceled' } : undefined;
      }
      if (!(error instanceof TaskFailure)) throw error;
      if (error.cause !== undefined) log.error({ err: error, msg: `task ${runId} failed` });
      return { status: 'failed', error: error.error };
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
        .write((tx) => beat(tx, claim, clock(), progress, isNews))
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
        log.warn({ err: error, msg: 'tasks cannot be looked for' });
      }
    }
    looking = undefined;
  };
  const timer = setInterval(wake, LOOK_EVERY_MS);
  wake();
  return {
    wake,
    release(task_ids) {
      for (const task_id of task_ids) running.get(task_id)?.stop('not_ours');
    },
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await looking;
      const open = [...running.values()];
      for (const { stop } of open) stop('server_stops');
      await Promise.all(open.map(({ ended }) => ended));
      await remove(workDirectory(worker_id));
      retire(worker_id);
    },
  };
}

async function remove(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
}

/** What events and lists tell of a result. */
function digestOf({ summary, notes }: BacktestDone): Readonly<Record<string, unknown>> {
  const { returns, risk, trades, equity, window, gates, hashes } = summary;
  return {
    metrics: {
      total_return: returns.total,
      cagr: returns.cagr,
      sharpe: risk.sharpe,
      max_drawdown: risk.max_drawdown,
      trades: trades.count,
      end_equity: equity.end,
    },
    gates: { met: gates.filter(({ pass }) => pass).length, total: gates.length },
    window,
    hashes,
    notes,
  };
}
