import type { BacktestDone, BacktestPorts, BacktestWork } from './backtest-work.ts';
import type { TaskMessage, WorkerMessage } from './backtest-worker.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { endThread } from '../../base/end-thread.ts';
import { TaskFailure } from '../../base/thread-failures.ts';
import { acquireThread, releaseThread, stopThread } from '../../base/thread-pool.ts';

const FILE = new URL(`./backtest-worker${import.meta.url.slice(-3)}`, import.meta.url);

/**
 * Runs a backtest in a thread of its own, which is idle or ended when this settles.
 * @throws TaskFailure; the reason with which `signal` was aborted.
 */
export async function runBacktestThread(
  work: BacktestWork,
  { onProgress, count, onFailedFiles, onLostFiles }: BacktestPorts,
  signal: AbortSignal,
): Promise<BacktestDone> {
  signal.throwIfAborted();
  const thread = acquireThread(FILE);
  const { promise, resolve, reject } = Promise.withResolvers<BacktestDone>();
  const send = (message: TaskMessage): void => thread.postMessage(message);
  const abort = (): void => reject(signal.reason);
  thread.on('message', (message: WorkerMessage) => {
    if ('progress' in message) onProgress(message.progress);
    else if ('trial' in message) count(message.trial).then((counts) => send({ counts }), reject);
    else if ('failedFiles' in message) onFailedFiles(message.failedFiles);
    else if ('lostFiles' in message) onLostFiles(message.lostFiles);
    else if ('done' in message) resolve(message.done);
    else reject(new TaskFailure(message.error, message.bug));
  });
  thread.on('error', (error: Error) => reject(ended(error.message, error)));
  thread.on('exit', (code) => reject(ended(`code ${code}`)));
  signal.addEventListener('abort', abort);
  send({ work });
  let isDone = false;
  try {
    const done = await promise;
    isDone = true;
    return done;
  } finally {
    signal.removeEventListener('abort', abort);
    if (isDone && work.files === undefined) {
      releaseThread(FILE, thread);
    } else if (work.files !== undefined) {
      await stopThread(thread);
    } else {
      await endThread(thread);
    }
  }
}

function ended(why: string, cause?: unknown): TaskFailure {
  const error: ErrorData = {
    code: 'failure',
    reason: 'worker_died',
    message: `the thread of the backtest ended unexpectedly: ${why}`,
    remedy: 'Check whether the machine has enough memory, or use fewer bars.',
  };
  return new TaskFailure(error, cause);
}
