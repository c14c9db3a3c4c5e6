import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import type { BacktestDone, BacktestWork } from './backtest-work.ts';
import type { WorkerMessage } from './backtest-worker.ts';
import type { Progress } from './lifecycle.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { releaseThread, acquireThread } from '../../base/thread-pool.ts';

/** Work that failed for a reason that whoever asked for it is told. */
export class TaskFailure extends Error {
  readonly error: ErrorData;

  constructor(error: ErrorData, cause?: unknown) {
    super(error.message, { cause });
    this.error = error;
  }
}

/** A thread that works for others ended: nothing is wrong with the work that is known. */
export class ThreadDied extends Error {}

const FILE = new URL(`./backtest-worker${import.meta.url.slice(-3)}`, import.meta.url);

/**
 * Does a backtest in a thread that does nothing else meanwhile, and has nothing more to do with it
 * when this settles.
 * @throws TaskFailure, or whatever `signal` was aborted with.
 */
export async function runBacktestThread(
  work: BacktestWork,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<BacktestDone> {
  signal.throwIfAborted();
  const thread = acquireThread(FILE);
  const { promise, resolve, reject } = Promise.withResolvers<BacktestDone>();
  // Ending a thread in which DuckDB is at work would end the process.
  let isLoading = true;
  const abort = (): void => {
    if (!isLoading) reject(signal.reason);
  };
  thread.on('message', (message: WorkerMessage) => {
    if (message === 'loaded') {
      isLoading = false;
      if (signal.aborted) abort();
    } else if ('progress' in message) onProgress(message.progress);
    else if ('done' in message) resolve(message.done);
    else reject(new TaskFailure(message.error, message.bug));
  });
  thread.on('error', (error: Error) => reject(ended(error.message, error)));
  thread.on('exit', (code) => reject(ended(`code ${code}`)));
  signal.addEventListener('abort', abort);
  thread.postMessage(work);
  let isDone = false;
  try {
    const done = await promise;
    isDone = true;
    return done;
  } finally {
    signal.removeEventListener('abort', abort);
    if (isDone && work.files === undefined) {
      releaseThread(FILE, thread);
    } else {
      // It ends the process of a strategy, which would outlive it.
      if (work.files !== undefined) await stopped(thread);
      await thread.terminate();
    }
  }
}

const STOP_WITHIN_MS = 2000;

async function stopped(thread: Worker): Promise<void> {
  if (thread.threadId === -1) return;
  thread.postMessage('stop');
  await once(thread, 'exit', { signal: AbortSignal.timeout(STOP_WITHIN_MS) }).catch(() => {});
}

function ended(why: string, cause?: unknown): TaskFailure {
  const error: ErrorData = {
    code: 'failure',
    reason: 'worker_died',
    message: `its thread ended before its time: ${why}`,
    remedy: 'See whether the machine has memory enough, or use fewer bars.',
  };
  return new TaskFailure(error, cause);
}
