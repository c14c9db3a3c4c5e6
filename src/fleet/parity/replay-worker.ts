import { parentPort } from 'node:worker_threads';
import type { ErrorData } from '../../base/error-data.ts';
import { toErrorData } from '../../base/error-data.ts';
import {
  compareSession,
  replaySession,
  type LogPart,
  type RunParity,
  type RunReplay,
  type SessionWork,
} from './replay-work.ts';

/** Message from the thread; `more` requests the next part of the log. */
export type ReplayMessage =
  | 'more'
  | { readonly done: RunReplay | RunParity }
  | { readonly error: ErrorData; readonly bug?: unknown };

function send(message: ReplayMessage): void {
  parentPort!.postMessage(message);
}

let stop: AbortController | undefined;
let isStopping = false;
let give: ((part: LogPart) => void) | undefined;

async function* parts(): AsyncGenerator<LogPart> {
  for (;;) {
    const { promise, resolve } = Promise.withResolvers<LogPart>();
    give = resolve;
    send('more');
    yield await promise;
  }
}

async function make(work: SessionWork): Promise<void> {
  stop = new AbortController();
  try {
    const { signal } = stop;
    const done =
      work.parity === undefined
        ? await replaySession(work, parts(), signal)
        : await compareSession(work, work.parity, parts(), signal);
    send({ done });
  } catch (error) {
    send(toErrorData(error));
  } finally {
    stop = undefined;
    if (isStopping) parentPort!.close();
  }
}

parentPort!.on('message', (message: SessionWork | LogPart | 'stop') => {
  if (message === 'stop') {
    isStopping = true;
    if (stop === undefined) parentPort!.close();
    else stop.abort(new Error('stopped'));
  } else if ('session' in message) void make(message);
  else give?.(message);
});
