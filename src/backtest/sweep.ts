import { Worker } from 'node:worker_threads';
import { ServiceError } from '../errors.ts';
import type { StrategySource } from './strategy-source.ts';
import type { Trial, TrialResult, TrialSetup } from './trial.ts';

export interface SweepOptions {
  /** Worker threads, at least 1. */
  readonly workers: number;
  readonly signal?: AbortSignal | undefined;
  /** Called with every result as it arrives, in no particular order. What it throws ends the sweep. */
  readonly onResult: (result: TrialResult) => void;
}

/** A worker gets this share of its part of what is left: few messages, and none idle at the end. */
const SHARE = 1 / 4;

/**
 * Runs the trials on worker threads that share the bars' memory. Which worker runs a trial, and
 * when, changes nothing in its result.
 *
 * @throws whatever `signal` was aborted with, after the workers were stopped, and ServiceError when
 *   a worker itself fails (a trial's own failure is its result).
 */
export async function sweep(
  setup: TrialSetup,
  source: StrategySource,
  trials: readonly Trial[],
  { workers, signal, onResult }: SweepOptions,
): Promise<void> {
  signal?.throwIfAborted();
  const count = Math.min(workers, trials.length);
  let next = 0;
  const takeChunk = (): readonly Trial[] => {
    const size = Math.ceil(((trials.length - next) / count) * SHARE);
    const chunk = trials.slice(next, next + size);
    next += chunk.length;
    return chunk;
  };

  const file = new URL(`./sweep-worker${import.meta.url.slice(-3)}`, import.meta.url);
  const threads: Worker[] = [];
  const work = async (): Promise<void> => {
    const thread = new Worker(file, { workerData: { source, setup }, stdout: true });
    threads.push(thread);
    // A strategy's own prints are for whoever watches, not part of the answer.
    thread.stdout.pipe(process.stderr, { end: false });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    thread.on('message', (message: TrialResult | 'next') => {
      try {
        if (message !== 'next') return onResult(message);
        const chunk = takeChunk();
        if (chunk.length > 0) thread.postMessage(chunk);
        else resolve();
      } catch (error) {
        reject(error);
      }
    });
    thread.on('error', (error: Error) => reject(workerError(error.message, error)));
    thread.on('exit', (code) => reject(workerError(`it ended with code ${code}`)));
    const abort = (): void => reject(signal!.reason as Error);
    signal?.addEventListener('abort', abort);
    await promise.finally(() => signal?.removeEventListener('abort', abort));
  };
  try {
    await Promise.all(Array.from({ length: count }, work));
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}

function workerError(message: string, cause?: unknown): ServiceError {
  return new ServiceError('strategy_failed', `a worker of the sweep failed: ${message}`, {
    remedy: 'A strategy must not end the process, and its file must not change during the sweep.',
    cause,
  });
}
