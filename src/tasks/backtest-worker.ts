import { parentPort, workerData } from 'node:worker_threads';
import { doBacktest, type BacktestDone, type BacktestWork } from './backtest-work.ts';
import type { Progress, TaskError } from './lifecycle.ts';
import { asTaskError } from './task-error.ts';

/** What the thread of a backtest tells: how far it is, and last of all how it ended. */
export type WorkerMessage =
  | 'loaded'
  | { readonly progress: Progress }
  | { readonly done: BacktestDone }
  | { readonly error: TaskError; readonly bug?: unknown };

function send(message: WorkerMessage): void {
  parentPort!.postMessage(message);
}

const stop = new AbortController();
parentPort!.once('message', () => stop.abort(new Error('stopped')));
try {
  const done = await doBacktest(
    workerData as BacktestWork,
    () => send('loaded'),
    (progress) => send({ progress }),
    stop.signal,
  );
  send({ done });
} catch (error) {
  send(asTaskError(error));
} finally {
  parentPort!.close();
}
