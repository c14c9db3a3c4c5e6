import { Worker } from 'node:worker_threads';
import { endThread } from '../base/end-thread.ts';
import { ServiceError } from '../base/errors.ts';
import { outOfMemory } from '../base/strategy-memory.ts';
import { heapLimits, isHeapFull, watchMemory } from './memory-watch.ts';
import type { StrategySource } from './strategy-source.ts';
import type { Trial, TrialResult, TrialSetup } from './trial.ts';

export interface SweepOptions {
  /** Worker threads, at least 1. */
  readonly workers: number;
  /** Memory of one run, as in `StrategyLimits`. */
  readonly memoryMb: number;
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
  { workers, memoryMb, signal, onResult }: SweepOptions,
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

  const threads: Worker[] = [];
  /**
   * Runs trials in one thread until none are left.
   *
   * @returns trials of its chunk that another thread must run because the memory of this one was
   *   full.
   */
  const workIn = async (rest: readonly Trial[]): Promise<readonly Trial[] | undefined> => {
    const thread = startThread(source, setup, memoryMb);
    threads.push(thread);
    const { promise, resolve, reject } = Promise.withResolvers<readonly Trial[] | undefined>();
    let chunk = rest;
    const fill = (): void => {
      const [trial, ...left] = chunk;
      if (trial === undefined) return reject(outOfMemory(memoryMb));
      onResult({ ...trial, error: outOfMemory(memoryMb).message });
      resolve(left);
    };
    thread.on('message', (message: TrialResult | 'next') => {
      try {
        if (message !== 'next') {
          chunk = chunk.slice(1);
          return onResult(message);
        }
        if (chunk.length === 0) chunk = takeChunk();
        if (chunk.length > 0) thread.postMessage(chunk);
        else resolve(undefined);
      } catch (error) {
        reject(error);
      }
    });
    let isFull = false;
    const full = (): void => {
      if (isFull) return;
      isFull = true;
      // Pending results are received first.
      void endThread(thread).then(fill).catch(reject);
    };
    // Built-in strategies need no memory limit.
    const isOwn = 'module' in source;
    const unwatch = isOwn ? watchMemory(thread, memoryMb, full) : () => {};
    thread.on('error', (error: Error) => {
      if (isHeapFull(error)) full();
      else reject(workerError(error.message, error));
    });
    thread.on('exit', (code) => {
      if (!isFull) reject(workerError(`it ended with code ${code}`));
    });
    const abort = (): void => reject(signal!.reason as Error);
    signal?.addEventListener('abort', abort);
    return promise.finally(() => {
      unwatch();
      signal?.removeEventListener('abort', abort);
    });
  };
  const work = async (): Promise<void> => {
    for (let rest = await workIn([]); rest !== undefined;) rest = await workIn(rest);
  };
  try {
    await Promise.all(Array.from({ length: count }, work));
  } finally {
    await Promise.all(threads.map(endThread));
  }
}

function startThread(source: StrategySource, setup: TrialSetup, memoryMb: number): Worker {
  const file = new URL(`./sweep-worker${import.meta.url.slice(-3)}`, import.meta.url);
  const resourceLimits = heapLimits(memoryMb);
  const thread = new Worker(file, { workerData: { source, setup }, stdout: true, resourceLimits });
  // Output that a strategy prints is not part of the result, so it goes to stderr.
  thread.stdout.pipe(process.stderr, { end: false });
  return thread;
}

function workerError(message: string, cause?: unknown): ServiceError {
  return new ServiceError('strategy_failed', `a worker of the sweep failed: ${message}`, {
    remedy: 'A strategy must not end the process, and its file must not change during the sweep.',
    cause,
  });
}
