/** One attempt at a claimed task, from its claim until it has ended or is back in the queue. */
import { rm } from 'node:fs/promises';
import { retry } from '../../base/backoff.ts';
import { join } from 'node:path';
import { toErrorData } from '../../base/error-data.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { SessionState } from '../../events/session-state.ts';
import { bindSpan, currentTraceparent, type Span } from '../../base/tracing.ts';
import { TaskFailure, ThreadDied } from '../../base/thread-failures.ts';
import { OrderSpans } from '../../trading/order-spans.ts';
import type { SessionThreads } from '../../trading/host/threads/session-threads.ts';
import type { SessionWork, TaskBatch } from '../../trading/host/threads/session-work.ts';
import { getRunnableVersion, type RunnableVersion } from '../registry/versions.ts';
import { watchSupervision } from '../thresholds/read-supervision.ts';
import { isAnalysis } from '../analyses/analysis-kinds.ts';
import { analyze } from '../analyses/analyze.ts';
import { runBacktestThread } from './backtest-thread.ts';
import type { BacktestWork } from './backtest-work.ts';
import type { Claim } from './claim.ts';
import { recordHeartbeat } from './heartbeats.ts';
import {
  finishTask,
  retryTask,
  returnToQueue,
  type Progress,
  type TaskOutcome,
} from './lifecycle.ts';
import type { StopReason } from './own-tasks.ts';
import type { PaperDone } from './paper-result.ts';
import type { PaperInput } from './paper.ts';
import { recordedInputs } from './read-run-events.ts';
import { botWrite, readSession, recordBatch } from './session-record.ts';
import { toTaskDone, type TaskDone } from './task-done.ts';
import { storeFiles } from './task-files.ts';
import { archiveWaits } from './task-notices.ts';
import { inTaskSpan } from './task-spans.ts';
import type { BacktestInput, TaskService } from './tasks.ts';
import { countTrials, recordOpening, type TaskTrial, type TrialCounts } from './trial-entries.ts';
import { findFirstLock } from './verify-lock.ts';

export const HEARTBEAT_EVERY_MS = 2000;
/** Wait before an access is repeated while the database does not answer. */
const RETRY_MS = 1000;
/** Share of a task's steps between two progress events. */
const PROGRESS_EVENT_SHARE = 1 / 4;

/**
 * Performs a conformance or stress test, and leaves its files as `<name>.gz` in the directory.
 * @throws TaskFailure; ServiceError; the reason with which `signal` was aborted.
 */
export type TestBot = (
  claim: Claim,
  tested: RunnableVersion,
  surroundings: {
    readonly directory: string;
    readonly signal: AbortSignal;
    readonly onProgress: (progress: Progress) => void;
    /** Repeats an access until the database answers. */
    readonly persist: <T>(access: () => Promise<T>) => Promise<T>;
  },
) => Promise<TaskDone>;

/** Requests to end a task, from the worker that runs it. */
export interface EndSignals {
  /** Aborted with a `StopReason`. */
  readonly stop: AbortController;
  /** Aborted when a paper session must end with its present result. */
  readonly wrapUp: AbortSignal;
}

/** Reasons with which a stopped task returns to the queue; other stopped tasks stay as they are. */
const REQUEUE_REASONS: Readonly<
  Partial<Record<StopReason, 'server_stopped' | 'database_not_adopted'>>
> = { server_stops: 'server_stopped', not_adopted: 'database_not_adopted' };

/** A batch was rejected: another process has the task, or is about to end it. */
class NotOurs extends Error {}

export interface AttemptOptions {
  readonly threads: SessionThreads<PaperDone>;
  /** Parent of the directories of all attempts. */
  readonly directory: string;
  /** Number of threads that run the trials of an analysis. */
  readonly workers: number;
  /** Longest time without progress that a strategy may take, ms. */
  readonly timeoutMs: number;
  readonly testBot?: TestBot | undefined;
  readonly log: Log;
  /** Aborted when the worker stops: accesses to the database are no longer repeated. */
  readonly stopping: AbortSignal;
}

export class TaskAttempts {
  readonly #service: TaskService;
  readonly #options: AttemptOptions;
  readonly #readSupervision: ReturnType<typeof watchSupervision>;

  constructor(service: TaskService, options: AttemptOptions) {
    this.#service = service;
    this.#options = options;
    this.#readSupervision = watchSupervision(service.storage.read, service.clock);
  }

  /** Performs a task, and writes its outcome or puts it back into the queue. */
  perform(claim: Claim, ends: EndSignals): Promise<void> {
    return inTaskSpan(claim, (span) => this.#perform(claim, ends, span));
  }

  async #perform(claim: Claim, ends: EndSignals, span: Span | undefined): Promise<void> {
    const { storage, clock } = this.#service;
    const { signal } = ends.stop;
    let progress: Progress | undefined;
    const heartbeat =
      claim.kind === 'paper' ? undefined : this.#startHeartbeat(claim, ends.stop, () => progress);
    const directory = join(this.#options.directory, claim.task_id);
    try {
      const outcome = await this.#work(claim, ends, directory, (made) => (progress = made)).finally(
        // Done before the task is released, because its next attempt may use the same directory.
        () => removeDirectory(directory),
      );
      if (outcome !== undefined) {
        span?.set({ 'task.status': outcome.status });
        if (outcome.status === 'failed') span?.fail(outcome.error.code);
        await this.#persist(() =>
          storage.write((tx) => finishTask(tx, claim, clock(), outcome, progress)),
        );
      } else {
        const reason = REQUEUE_REASONS[signal.reason as StopReason];
        if (reason === undefined) return;
        await storage.write((tx) => returnToQueue(tx, claim, clock(), reason));
      }
    } catch (error) {
      if (error instanceof NotOurs) return;
      await this.#release(claim, error);
    } finally {
      clearInterval(heartbeat);
    }
  }

  /** Puts a task that could not be finished here back into the queue, so that it restarts at once. */
  async #release(claim: Claim, error: unknown): Promise<void> {
    const { storage, clock } = this.#service;
    const { log } = this.#options;
    const { task_id } = claim;
    if (isStorageFault(error)) {
      log.warn({ err: error, msg: `task ${task_id} is released: the database does not answer` });
      await this.#persist(() =>
        storage.write((tx) => returnToQueue(tx, claim, clock(), 'storage_unavailable')),
      );
      return;
    }
    if (error instanceof ThreadDied) {
      log.warn(`paper session ${task_id} restarts: ${error.message}`);
    } else {
      log.error({ err: error, msg: `task ${task_id} restarts after an unexpected error` });
    }
    await this.#persist(() => storage.write((tx) => retryTask(tx, claim, clock())));
  }

  /** @returns undefined when the task has no outcome, because it was stopped or claimed by others. */
  async #work(
    claim: Claim,
    { stop: { signal }, wrapUp }: EndSignals,
    directory: string,
    onProgress: (progress: Progress) => void,
  ): Promise<TaskOutcome | undefined> {
    const { storage, catalogueDir, customCode } = this.#service;
    const { timeoutMs, testBot, workers, log } = this.#options;
    const { task_id: runId, bot_id, version } = claim;
    const persist = <T>(access: () => Promise<T>) => this.#persist(access);
    /** Known once a backtest is about to run its first bar. */
    let trial: TaskTrial | undefined;
    const onTrial = (found: TaskTrial) => (trial = found);
    const executed = (sharpe: number | null) => trial && { ...trial, sharpe };
    /** Names of the files stored for a failed backtest. */
    let kept: readonly string[] = [];
    const onKept = (names: readonly string[]) => (kept = names);
    try {
      const { bundle_hash } = JSON.parse(claim.input) as Pick<BacktestInput, 'bundle_hash'>;
      const runnable = await persist(() =>
        getRunnableVersion(this.#service, bot_id, version, bundle_hash),
      );
      const work = { runId, ...runnable, customCode, catalogueDir, timeoutMs, directory };
      const done: TaskDone | undefined =
        claim.kind === 'paper'
          ? await this.#trade(claim, work, signal, wrapUp)
          : claim.kind === 'backtest'
            ? await this.#backtest(claim, work, signal, { onProgress, onTrial, onKept })
            : isAnalysis(claim.kind)
              ? await analyze(this.#service, claim, work, { workers, signal, onProgress, persist })
              : await testBot!(claim, runnable, { directory, signal, onProgress, persist });
      if (done === undefined) return { status: 'canceled' };
      if (!(await storeFiles(storage, claim, done.files, { directory, persist, signal })))
        return undefined;
      const { result, summary, sharpe = null } = done;
      const counted = executed(sharpe);
      return { status: 'success', result: JSON.stringify(result), summary, trial: counted };
    } catch (error) {
      if (signal.aborted) {
        return (signal.reason as StopReason) === 'canceled' ? { status: 'canceled' } : undefined;
      }
      // The version may not run here, for example because its bundle was changed.
      if (error instanceof ServiceError && !error.retryable) {
        return { status: 'failed', error: toErrorData(error).error, trial: executed(null) };
      }
      if (!(error instanceof TaskFailure)) throw error;
      if (error.cause !== undefined) log.error({ err: error, msg: `task ${runId} failed` });
      return { status: 'failed', error: error.error, trial: executed(null), files: kept };
    }
  }

  async #backtest(
    claim: Claim,
    work: Omit<BacktestWork, 'changes' | 'locked'>,
    signal: AbortSignal,
    {
      onProgress,
      onTrial,
      onKept,
    }: {
      readonly onProgress: (progress: Progress) => void;
      readonly onTrial: (found: TaskTrial) => void;
      readonly onKept: (names: readonly string[]) => void;
    },
  ): Promise<TaskDone> {
    const { verify_lock, ...run } = JSON.parse(claim.input) as BacktestInput;
    const { open_holdout, bundle_hash, ...changes } = run;
    const { storage, clock } = this.#service;
    const locked = verify_lock
      ? await this.#persist(() => findFirstLock(storage.read, claim, run))
      : undefined;
    const count = async (found: TaskTrial): Promise<TrialCounts> => {
      onTrial(found);
      if (found.holdout?.is_open) {
        await this.#persist(() =>
          storage.write((tx) => recordOpening(tx, claim.task_id, clock(), found)),
        );
      }
      const own = { ...found, keys: [found.key] };
      return this.#persist(() => countTrials(storage.read, own));
    };
    const asked = { ...work, changes, locked, opensHoldout: open_holdout, unsaved: bundle_hash };
    let failedFiles: readonly string[] = [];
    const onFailedFiles = (names: readonly string[]) => void (failedFiles = names);
    const onLostFiles = (cause: unknown): void =>
      this.#options.log.error({
        err: cause,
        msg: `the log of the strategy of the failed task ${claim.task_id} cannot be stored`,
      });
    const ports = { onProgress, count, onFailedFiles, onLostFiles };
    try {
      const done = await runBacktestThread(asked, ports, signal);
      return { ...toTaskDone(done), sharpe: done.summary.risk.sharpe };
    } catch (error) {
      const persist = <T>(access: () => Promise<T>) => this.#persist(access);
      const { directory } = work;
      try {
        const options = { directory, persist, signal };
        if (await storeFiles(storage, claim, failedFiles, options)) onKept(failedFiles);
      } catch (cause) {
        if (signal.aborted || isStorageFault(cause)) throw cause;
        onLostFiles(cause);
      }
      throw error;
    }
  }

  /** Continues a paper session from its recorded state. */
  async #trade(
    claim: Claim,
    work: Omit<SessionWork, 'input' | 'recorded'>,
    gone: AbortSignal,
    wrapUp: AbortSignal,
  ): Promise<TaskDone | undefined> {
    const { storage, clock, archiveDir = '' } = this.#service;
    const { task_id } = claim;
    const { batches, state, first_seq } = await this.#persist(() =>
      readSession(storage.read, task_id),
    );
    const recorded = { batches, state: JSON.parse(state) as SessionState };
    const input = JSON.parse(claim.input) as PaperInput;
    const read = recordedInputs(storage.read, archiveDir, { ...claim, after_seq: first_seq - 1 });
    const spans = new OrderSpans(currentTraceparent());
    let written: Promise<void> = Promise.resolve();
    const record = async (batch: TaskBatch): Promise<void> => {
      const isOurs = await this.#persist(() =>
        storage.write(
          (tx) => recordBatch(tx, claim, clock(), batch),
          botWrite(claim, batch.events),
        ),
      );
      if (!isOurs) throw new NotOurs(`task ${task_id} no longer belongs to this worker`);
      spans.take(batch);
    };
    try {
      const done = await this.#options.threads.run(
        { ...work, input, recorded },
        {
          inputs: () => this.#persist(this.#noteWaits(task_id, read), gone),
          readSupervision: () => this.#persist(() => this.#readSupervision(task_id)),
          // One after the other, because each batch continues the one before.
          record: bindSpan((batch: TaskBatch) => (written = written.then(() => record(batch)))),
          stop: wrapUp,
          gone,
        },
      );
      return done && toTaskDone(done);
    } finally {
      archiveWaits.delete(task_id);
      spans.close();
    }
  }

  #startHeartbeat(
    claim: Claim,
    stop: AbortController,
    progressOf: () => Progress | undefined,
  ): NodeJS.Timeout {
    const { storage, clock } = this.#service;
    const { task_id } = claim;
    let recorded = 0;
    return setInterval(() => {
      const progress = progressOf();
      const share = progress === undefined ? 0 : progress.done / progress.total;
      const isEvent = share < 1 && share - recorded >= PROGRESS_EVENT_SHARE;
      if (isEvent) recorded = share;
      storage
        .write((tx) => recordHeartbeat(tx, claim, clock(), progress, isEvent), botWrite(claim))
        .then(
          (isOurs) => isOurs || stop.abort('not_ours' satisfies StopReason),
          (error: unknown) =>
            this.#options.log.warn({
              err: error,
              msg: `the heartbeat of task ${task_id} cannot be written`,
            }),
        );
    }, HEARTBEAT_EVERY_MS);
  }

  /** Counts a session as waiting while its archived inputs cannot be read, and logs the first error. */
  #noteWaits<T>(task_id: string, read: () => Promise<T>): () => Promise<T> {
    return async () => {
      try {
        const inputs = await read();
        archiveWaits.delete(task_id);
        return inputs;
      } catch (error) {
        const isArchive = error instanceof ServiceError && error.reason === 'archive_unreadable';
        if (isArchive && !archiveWaits.has(task_id)) {
          const msg = `a session cannot resume, because ${error.message}`;
          this.#options.log.error({ err: error, msg });
          archiveWaits.add(task_id);
        }
        throw error;
      }
    };
  }

  /** Repeats an access while the database does not answer, until the worker stops. */
  #persist<T>(access: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { stopping } = this.#options;
    return retry(access, {
      signal,
      shortestMs: RETRY_MS,
      longestMs: RETRY_MS,
      shouldRetry: (error) => error instanceof ServiceError && error.retryable && !stopping.aborted,
      wake: stopping,
    });
  }
}

/** Whether the database did not answer, which is no failure of a task or its bot. */
export function isStorageFault(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'storage_unavailable';
}

/** Ignores errors: a leftover directory does not invalidate a result. */
export async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true }).catch(() => {});
}
