import { Worker } from 'node:worker_threads';
import { stopThread } from '../../base/thread-pool.ts';
import { TaskFailure } from '../../base/thread-failures.ts';
import { THREAD_ENV } from '../../base/thread-env.ts';
import type { ReportedTrials, OwnTrials, TrialCounts } from '../tasks/trial-entries.ts';
import type { Progress } from '../tasks/lifecycle.ts';
import type { AnalysisDone, AnalysisWork } from './analysis-work.ts';
import type { AnalysisMessage, AnalysisOrder } from './analysis-worker.ts';

const FILE = new URL(`./analysis-worker${import.meta.url.slice(-3)}`, import.meta.url);

interface ThreadPorts {
  readonly onProgress: (progress: Progress) => void;
  readonly record: (trials: ReportedTrials) => Promise<void>;
  readonly count: (own: OwnTrials) => Promise<TrialCounts>;
}

/**
 * Runs an analysis in a thread of its own, whose own threads run the trials. All have ended when this
 * settles, and all trials are recorded.
 *
 * @throws TaskFailure; the reason with which `signal` was aborted; errors of `record` and `count`
 */
export async function runAnalysisThread(
  work: AnalysisWork,
  { onProgress, record, count }: ThreadPorts,
  signal: AbortSignal,
): Promise<AnalysisDone> {
  signal.throwIfAborted();
  const thread = new Worker(FILE, { env: THREAD_ENV });
  const { promise, resolve, reject } = Promise.withResolvers<AnalysisDone>();
  const send = (order: AnalysisOrder): void => thread.postMessage(order);
  const abort = (): void => reject(signal.reason);
  let recorded: Promise<void> = Promise.resolve();
  thread.on('message', (message: AnalysisMessage) => {
    if ('progress' in message) onProgress(message.progress);
    else if ('ended' in message) {
      recorded = recorded.then(() => record(message.ended));
      recorded.catch(reject);
    } else if ('own' in message) {
      count(message.own).then((counts) => send({ counts }), reject);
    } else if ('done' in message) recorded.then(() => resolve(message.done), reject);
    else reject(new TaskFailure(message.error, message.bug));
  });
  thread.on('error', (error: Error) => reject(ended(error.message, error)));
  thread.on('exit', (code) => void recorded.finally(() => reject(ended(`code ${code}`))));
  signal.addEventListener('abort', abort);
  send({ work });
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await stopThread(thread);
  }
}

function ended(why: string, cause?: unknown): TaskFailure {
  return new TaskFailure(
    {
      code: 'failure',
      reason: 'worker_died',
      message: `the thread of the analysis ended unexpectedly: ${why}`,
      remedy: 'Check whether the machine has enough memory, or search fewer combinations.',
    },
    cause,
  );
}
