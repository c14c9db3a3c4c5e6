import { parentPort } from 'node:worker_threads';
import { doBacktest, type BacktestDone, type BacktestWork } from './backtest-work.ts';
import type { Progress } from './lifecycle.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { toErrorData } from '../../base/error-data.ts';

/** Message from the thread of a backtest; after the last one, the thread waits for other work. */
export type WorkerMessage =
  | { readonly progress: Progress }
  | { readonly done: BacktestDone }
  | { readonly error: ErrorData; readonly bug?: unknown };

function send(message: WorkerMessage): void {
  parentPort!.postMessage(message);
}

let stop: AbortController | undefined;
let isStopping = false;

async function work(asked: BacktestWork): Promise<void> {
  stop = new AbortController();
  try {
    const done = await doBacktest(asked, (progress) => send({ progress }), stop.signal);
    send({ done });
  } catch (error) {
    send(toErrorData(error));
  } finally {
    stop = undefined;
    if (isStopping) parentPort!.close();
  }
}

parentPort!.on('message', (message: BacktestWork | 'stop') => {
  if (message === 'stop') {
    isStopping = true;
    if (stop === undefined) parentPort!.close();
    else stop.abort(new Error('stopped'));
  } else void work(message);
});
