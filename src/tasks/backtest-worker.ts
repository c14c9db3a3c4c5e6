import { parentPort, workerData } from 'node:worker_threads';
import { ServiceError } from '../errors.ts';
import { doBacktest, type BacktestDone, type BacktestWork } from './backtest-work.ts';
import type { Progress, TaskError } from './lifecycle.ts';

/** What the thread of a backtest tells: how far it is, and last of all how it ended. */
export type WorkerMessage =
  | 'loaded'
  | { readonly progress: Progress }
  | { readonly done: BacktestDone }
  | { readonly error: TaskError; readonly bug?: unknown };

function send(message: WorkerMessage): void {
  parentPort!.postMessage(message);
}

try {
  const done = await doBacktest(
    workerData as BacktestWork,
    () => send('loaded'),
    (progress) => send({ progress }),
  );
  send({ done });
} catch (error) {
  send(error instanceof ServiceError ? { error: errorOf(error) } : unexpected(error));
}

function errorOf({ code, message, reason, remedy, problems }: ServiceError): TaskError {
  return {
    code,
    message,
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
    ...(problems.length > 0 && { problems }),
  };
}

function unexpected(bug: unknown): WorkerMessage {
  return { error: { code: 'failure', message: 'it failed for a reason nobody expected' }, bug };
}
