import { Worker } from 'node:worker_threads';
import type { StrategySource } from './strategy-source.ts';
import type { Trial, TrialResult, TrialSetup } from './trial.ts';

export interface SweepOptions {
  /** Worker threads, at least 1. */
  readonly workers: number;
  readonly signal?: AbortSignal | undefined;
  /** Called with every chunk of results as it arrives, in no particular order. */
  readonly onResults: (results: readonly TrialResult[]) => void;
}

/** Chunks per worker over the whole sweep: few messages, and no worker idle for long at the end. */
const CHUNKS_PER_WORKER = 12;

/**
 * Runs the trials on worker threads that share the bars' memory. Which worker runs a trial, and
 * when, changes nothing in its result.
 *
 * @throws whatever `signal` was aborted with, after the workers were stopped; an error of a worker
 *   itself (a trial's own failure is its result).
 */
export async function sweep(
  setup: TrialSetup,
  source: StrategySource,
  trials: readonly Trial[],
  { workers, signal, onResults }: SweepOptions,
): Promise<void> {
  if (trials.length === 0) return;
  const count = Math.min(workers, trials.length);
  const size = Math.max(1, Math.ceil(trials.length / (count * CHUNKS_PER_WORKER)));
  let next = 0;
  const takeChunk = (): readonly Trial[] => {
    const chunk = trials.slice(next, next + size);
    next += chunk.length;
    return chunk;
  };

  const file = new URL(`./sweep-worker${import.meta.url.slice(-3)}`, import.meta.url);
  const threads = Array.from(
    { length: count },
    () => new Worker(file, { workerData: { source, setup } }),
  );
  const finished = threads.map(
    (thread) =>
      new Promise<void>((resolve, reject) => {
        thread.on('message', (results: readonly TrialResult[]) => {
          if (results.length > 0) onResults(results);
          const chunk = takeChunk();
          if (chunk.length > 0) thread.postMessage(chunk);
          else resolve();
        });
        thread.on('error', reject);
        thread.on('exit', (code) => reject(new Error(`a sweep worker ended with code ${code}`)));
        signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      }),
  );
  try {
    signal?.throwIfAborted();
    await Promise.all(finished);
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}
