import { Worker } from 'node:worker_threads';
import type { Progress } from '../../fleet/tasks/lifecycle.ts';
import { TaskFailure } from '../../base/thread-failures.ts';
import { endThread } from '../../base/end-thread.ts';
import { THREAD_ENV } from '../../base/thread-env.ts';
import type { ConformanceResult } from '../conformance/run-conformance.ts';
import type { StressResult } from '../stress/run.ts';
import type { ConformanceWork, TestMessage, TestWork } from './test-worker.ts';

const FILE = new URL(`./test-worker${import.meta.url.slice(-3)}`, import.meta.url);

type ResultOf<W extends TestWork> = W extends ConformanceWork ? ConformanceResult : StressResult;

/**
 * Runs a test in a new thread, because the test replaces the clocks of its thread.
 *
 * @throws TaskFailure; the reason of `signal` if it is aborted.
 */
export async function testInThread<W extends TestWork>(
  work: W,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<ResultOf<W>> {
  signal.throwIfAborted();
  const thread = new Worker(FILE, { env: THREAD_ENV, workerData: work });
  const { promise, resolve, reject } = Promise.withResolvers<ResultOf<W>>();
  const abort = (): void => reject(signal.reason);
  thread.on('message', (message: TestMessage) => {
    if ('progress' in message) onProgress(message.progress);
    else if ('done' in message) resolve(message.done as ResultOf<W>);
    else reject(new TaskFailure(message.error, message.bug));
  });
  thread.on('error', (error: Error) => reject(createThreadFailure(error.message, error)));
  thread.on('exit', (code) => reject(createThreadFailure(`code ${code}`)));
  signal.addEventListener('abort', abort);
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await endThread(thread);
  }
}

function createThreadFailure(why: string, cause?: unknown): TaskFailure {
  const message = `the thread of the test ended unexpectedly: ${why}`;
  const remedy = 'Check that the machine has enough free memory, then start the test again.';
  return new TaskFailure({ code: 'failure', reason: 'worker_died', message, remedy }, cause);
}
