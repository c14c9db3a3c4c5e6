import { parentPort } from 'node:worker_threads';
import { forkSession } from './fork-work.ts';
import type { ErrorData } from '../../base/error-data.ts';
import { toErrorData } from '../../base/error-data.ts';
import { compareSession, replaySession, type LogPart, type SessionWork } from './replay-work.ts';

export type ReplayResult = Awaited<
  ReturnType<typeof replaySession | typeof compareSession | typeof forkSession>
>;

/** Message from the thread; `more` requests the next part of the log. */
export type ReplayMessage =
  | 'more'
  | { readonly done: ReplayResult }
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

function resultOf(work: SessionWork, signal: AbortSignal): Promise<ReplayResult> {
  const { parity, fork } = work;
  if (parity !== undefined) return compareSession(work, parity, parts(), signal);
  if (fork !== undefined) return forkSession(work, fork, parts(), signal);
  return replaySession(work, parts(), signal);
}

async function make(work: SessionWork): Promise<void> {
  stop = new AbortController();
  try {
    const { signal } = stop;
    send({ done: await resultOf(work, signal) });
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
