import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { ServiceError } from '../../base/errors.ts';
import { releaseThread, acquireThread } from '../../base/thread-pool.ts';
import { fromErrorData } from '../../base/error-data.ts';
import type { ReplayMessage } from './replay-worker.ts';
import type { LogPart, RunParity, RunReplay, SessionWork } from './replay-work.ts';

/** Before whoever asked has waited for as long as any request may take. */
const LIMIT_MS = 25_000;
/** Each has the bars of a session in its memory, and keeps a processor busy. */
const MOST_AT_ONCE = 2;

let atOnce = 0;

const FILE = new URL(`./replay-worker${import.meta.url.slice(-3)}`, import.meta.url);

/**
 * Makes a session again in a thread that does nothing else, so that others are served meanwhile.
 *
 * @param parts of the log; each is read when the thread wants it.
 * @throws ServiceError `overloaded` when it takes too long, or as many as may are at it; what the work
 * throws; whatever `parts` throws.
 */
export async function runReplayThread(
  work: SessionWork,
  parts: AsyncIterator<LogPart>,
): Promise<RunReplay | RunParity> {
  if (atOnce >= MOST_AT_ONCE) {
    throw new ServiceError('overloaded', `${MOST_AT_ONCE} sessions are being made again already`, {
      remedy: 'Try again when they are done.',
      retryAfterSeconds: 5,
    });
  }
  const thread = acquireThread(FILE);
  atOnce += 1;
  const { promise, resolve, reject } = Promise.withResolvers<RunReplay | RunParity>();
  // Ending a thread in which DuckDB is at work would end the process.
  let loading: PromiseWithResolvers<void> | undefined;
  let isSettled = false;
  const feed = async (): Promise<void> => {
    const { value } = await parts.next();
    if (!isSettled) thread.postMessage(value);
  };
  thread.on('message', (message: ReplayMessage) => {
    if (message === 'more') feed().catch(reject);
    else if (message === 'loading') loading = Promise.withResolvers<void>();
    else if (message === 'loaded') loading?.resolve();
    else if ('done' in message) resolve(message.done);
    else reject((message.bug as Error | undefined) ?? fromErrorData(message.error));
  });
  thread.on('error', reject);
  thread.on('exit', (code) => {
    loading?.resolve();
    reject(new Error(`the thread of a replay ended with code ${code}`));
  });
  const timer = setTimeout(() => reject(tooLong()), LIMIT_MS);
  thread.postMessage(work);
  let isDone = false;
  try {
    const done = await promise;
    isDone = true;
    return done;
  } finally {
    isSettled = true;
    clearTimeout(timer);
    if (isDone && !hasCode(work)) {
      releaseThread(FILE, thread);
      atOnce -= 1;
    } else void end(thread, loading?.promise);
  }
}

/** Whether the thread may have started a process for a strategy that came with the bot. */
function hasCode({ session, parity }: SessionWork): boolean {
  return session.files !== undefined || parity?.backtest.files !== undefined;
}

const STOP_WITHIN_MS = 2000;

async function end(thread: Worker, loading: Promise<void> | undefined): Promise<void> {
  await loading;
  // It ends the process of a strategy, which would outlive it.
  thread.postMessage('stop');
  const within = AbortSignal.timeout(STOP_WITHIN_MS);
  if (thread.threadId !== -1) await once(thread, 'exit', { signal: within }).catch(() => {});
  await thread.terminate();
  atOnce -= 1;
}

function tooLong(): ServiceError {
  return new ServiceError('overloaded', `it takes longer than ${LIMIT_MS / 1000} seconds`, {
    remedy: 'Try again when the server has less to do.',
    retryAfterSeconds: 5,
  });
}
