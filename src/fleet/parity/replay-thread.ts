import { ServiceError } from '../../base/errors.ts';
import { acquireThread, releaseThread, stopThread } from '../../base/thread-pool.ts';
import { fromErrorData } from '../../base/error-data.ts';
import type { ReplayMessage, ReplayResult } from './replay-worker.ts';
import type { LogPart, SessionWork } from './replay-work.ts';

/** Shorter than the timeout of requests. */
const LIMIT_MS = 25_000;
/** Each replay holds the bars of a session in memory, and keeps a processor busy. */
const MOST_AT_ONCE = 2;

let atOnce = 0;

const FILE = new URL(`./replay-worker${import.meta.url.slice(-3)}`, import.meta.url);

/**
 * Replays a session in a thread of its own.
 *
 * @param parts parts of the log, each read when the thread requests it.
 * @throws ServiceError `overloaded` for too many replays or one that takes too long; errors of the
 * replay and of `parts`.
 */
export async function runReplayThread(
  work: SessionWork,
  parts: AsyncIterator<LogPart>,
): Promise<ReplayResult> {
  if (atOnce >= MOST_AT_ONCE) {
    throw new ServiceError('overloaded', `${MOST_AT_ONCE} replays or forks are already running`, {
      remedy: 'Try again in a few seconds.',
      retryAfterSeconds: 5,
    });
  }
  const thread = acquireThread(FILE);
  atOnce += 1;
  const { promise, resolve, reject } = Promise.withResolvers<ReplayResult>();
  let isSettled = false;
  const feed = async (): Promise<void> => {
    const { value } = await parts.next();
    if (!isSettled) thread.postMessage(value);
  };
  thread.on('message', (message: ReplayMessage) => {
    if (message === 'more') feed().catch(reject);
    else if ('done' in message) resolve(message.done);
    else reject((message.bug as Error | undefined) ?? fromErrorData(message.error));
  });
  thread.on('error', reject);
  thread.on('exit', (code) => {
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
    } else {
      // Awaited, so that a caller who tries again at once finds its place free.
      await stopThread(thread);
      atOnce -= 1;
    }
  }
}

/** Whether the thread may have started a process for a custom strategy. */
function hasCode({ session, parity }: SessionWork): boolean {
  return session.files !== undefined || parity?.backtest.files !== undefined;
}

function tooLong(): ServiceError {
  return new ServiceError('overloaded', `the replay takes longer than ${LIMIT_MS / 1000} seconds`, {
    remedy: 'Try again when the server is less busy.',
    retryAfterSeconds: 5,
  });
}
