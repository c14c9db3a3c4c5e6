import { parentPort } from 'node:worker_threads';
import { doBacktest, type BacktestDone, type BacktestWork } from './backtest-work.ts';
import type { Progress } from './lifecycle.ts';
import type { ErrorData } from '../../base/error-data.ts';
import type { TaskTrial, TrialCounts } from './trial-entries.ts';
import { toErrorData, toPlainError } from '../../base/error-data.ts';

/** Message from the thread of a backtest; after the last one, the thread waits for other work. */
export type WorkerMessage =
  | { readonly progress: Progress }
  /** Answered with `TrialCounts`. */
  | { readonly trial: TaskTrial }
  | { readonly failedFiles: readonly string[] }
  | { readonly lostFiles: Error }
  | { readonly done: BacktestDone }
  | { readonly error: ErrorData; readonly bug?: unknown };

function send(message: WorkerMessage): void {
  parentPort!.postMessage(message);
}

/** Message to the thread of a backtest. */
export type TaskMessage =
  | { readonly work: BacktestWork }
  | { readonly counts: TrialCounts }
  | 'stop';

let counted = Promise.withResolvers<TrialCounts>();
let stop: AbortController | undefined;
let isStopping = false;

async function work(asked: BacktestWork): Promise<void> {
  stop = new AbortController();
  counted = Promise.withResolvers();
  const count = (trial: TaskTrial): Promise<TrialCounts> => {
    send({ trial });
    return counted.promise;
  };
  const onProgress = (progress: Progress): void => send({ progress });
  const onFailedFiles = (failedFiles: readonly string[]): void => send({ failedFiles });
  const onLostFiles = (cause: unknown): void => send({ lostFiles: toPlainError(cause) });
  const ports = { onProgress, count, onFailedFiles, onLostFiles };
  try {
    const done = await doBacktest(asked, ports, stop.signal);
    send({ done });
  } catch (error) {
    send(toErrorData(error));
  } finally {
    stop = undefined;
    if (isStopping) parentPort!.close();
  }
}

parentPort!.on('message', (message: TaskMessage) => {
  if (message === 'stop') {
    isStopping = true;
    if (stop === undefined) parentPort!.close();
    else stop.abort(new Error('stopped'));
  } else if ('counts' in message) counted.resolve(message.counts);
  else void work(message.work);
});
