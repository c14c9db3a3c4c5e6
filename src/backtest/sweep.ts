import { Worker } from 'node:worker_threads';
import { endThread } from '../base/end-thread.ts';
import { ServiceError } from '../base/errors.ts';
import { outOfMemory } from '../base/strategy-memory.ts';
import type { Grid } from './grid.ts';
import { heapLimits, isHeapFull, MB, watchMemory } from './memory-watch.ts';
import type { StrategySource } from './strategy-source.ts';
import type { Trial, TrialResult, TrialSetup } from './trial.ts';

export interface SweepOptions {
  readonly workers: number;
  /** Memory of one run, as in `StrategyLimits`. */
  readonly memoryMb: number;
  /** Memory of all workers together for the indicators that they keep for later trials. */
  readonly columnMb: number;
  readonly signal?: AbortSignal | undefined;
  /** Called with every result, in the order of completion. An error thrown here ends the sweep. */
  readonly onResult: (result: TrialResult) => void;
}

/** Data of a worker thread. */
export interface SweepThread {
  readonly source: StrategySource;
  readonly setup: TrialSetup;
  /** Bound on the indicators that the thread keeps. */
  readonly columnBytes: number;
}

/**
 * Share of a worker's part of the remaining trials that it receives at once. Chunks shrink towards the
 * end of the sweep, so that all workers finish at about the same time.
 */
const CHUNK_SHARE = 1 / 4;
/** Maximum number of trials in a chunk, since a worker receives them as objects. */
const MAX_CHUNK = 256;

/** Trials to run, as indices in a grid. */
export interface SweepTrials {
  readonly grid: Grid;
  readonly pending: Uint32Array;
}

/**
 * Runs the trials on worker threads that share the memory of the bars. The result of a trial does not
 * depend on its worker or on the order of trials.
 *
 * @throws the reason with which `signal` was aborted, once the workers have stopped; ServiceError if a
 *   worker fails. The error of a trial is passed to `onResult` instead.
 */
export async function sweep(
  setup: TrialSetup,
  source: StrategySource,
  trials: SweepTrials,
  { workers, memoryMb, columnMb, signal, onResult }: SweepOptions,
): Promise<void> {
  signal?.throwIfAborted();
  const { grid, pending } = trials;
  const count = Math.min(workers, pending.length);
  let next = 0;
  const takeChunk = (): readonly Trial[] => {
    const share = Math.ceil(((pending.length - next) / count) * CHUNK_SHARE);
    const indices = pending.subarray(next, next + Math.min(share, MAX_CHUNK));
    next += indices.length;
    return Array.from(indices, (index) => grid.trial(index));
  };

  const threads: Worker[] = [];
  /**
   * Runs trials in one thread until none are left.
   *
   * @returns the rest of its chunk, for another thread, if the memory of this one is full
   */
  const workIn = async (rest: readonly Trial[]): Promise<readonly Trial[] | undefined> => {
    const columnBytes = (columnMb * MB) / count;
    const thread = startThread({ source, setup, columnBytes }, memoryMb);
    threads.push(thread);
    const { promise, resolve, reject } = Promise.withResolvers<readonly Trial[] | undefined>();
    let chunk = rest;
    let doneInChunk = 0;
    const fill = (): void => {
      const [trial, ...left] = chunk.slice(doneInChunk);
      if (trial === undefined) return reject(outOfMemory(memoryMb));
      onResult({ ...trial, error: outOfMemory(memoryMb).message });
      resolve(left);
    };
    thread.on('message', (message: TrialResult | 'next') => {
      try {
        if (message !== 'next') {
          doneInChunk += 1;
          return onResult(message);
        }
        if (doneInChunk === chunk.length) chunk = takeChunk();
        doneInChunk = 0;
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
      // The thread's pending results arrive before it has ended.
      void endThread(thread).then(fill).catch(reject);
    };
    // Built-in strategies need no memory limit.
    const isOwn = 'module' in source;
    const unwatch = isOwn ? watchMemory(thread, memoryMb + columnMb / count, full) : () => {};
    thread.on('error', (error: Error) => {
      if (isHeapFull(error)) full();
      else reject(workerError(error.message, error));
    });
    thread.on('exit', (code) => {
      if (!isFull) reject(workerError(`exit code ${code}`));
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

function startThread(workerData: SweepThread, memoryMb: number): Worker {
  const file = new URL(`./sweep-worker${import.meta.url.slice(-3)}`, import.meta.url);
  const resourceLimits = heapLimits(memoryMb);
  const thread = new Worker(file, { workerData, stdout: true, resourceLimits });
  // Stdout carries the output of the command, so strategies print to stderr.
  thread.stdout.pipe(process.stderr, { end: false });
  return thread;
}

function workerError(message: string, cause?: unknown): ServiceError {
  return new ServiceError('strategy_failed', `a worker of the sweep failed: ${message}`, {
    remedy:
      'Remove calls that end the process from the strategy, do not change its file during the sweep, and start the sweep again.',
    cause,
  });
}
