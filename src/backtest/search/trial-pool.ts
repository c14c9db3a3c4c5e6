import { MB } from '../memory-watch.ts';
import type { StrategySource } from '../strategy-source.ts';
import { TrialThread } from './trial-thread.ts';
import type { TrialBatch, TrialRunner } from './trial-runner.ts';
import type { Trial, TrialResult } from './trial.ts';

export interface TrialLimits {
  /** Number of threads. */
  readonly workers: number;
  /** Memory of one run, as in `StrategyLimits`. */
  readonly memoryMb: number;
  /** Memory of all workers together for the indicators that they keep for later trials. */
  readonly columnMb: number;
  /** Runs the trials instead of threads; the caller ends it. */
  readonly runner?: TrialRunner | undefined;
}

/**
 * Share of a worker's part of the remaining trials that it receives at once. Chunks shrink toward the
 * end, so that all workers finish at about the same time.
 */
const CHUNK_SHARE = 1 / 4;
/** Maximum number of trials in a chunk, since a worker receives them as objects. */
const MAX_CHUNK = 256;

/**
 * Worker threads that share the memory of the bars. They start with the first trial, and later batches
 * use them again. The result of a trial does not depend on its worker or on the order of trials.
 */
export class TrialPool implements TrialRunner {
  readonly #start: (timeoutMs: number) => TrialThread;
  readonly #threads: (TrialThread | undefined)[];

  constructor(source: StrategySource, { workers, memoryMb, columnMb }: TrialLimits) {
    const columnBytes = (columnMb * MB) / workers;
    this.#start = (timeoutMs) => new TrialThread({ source, timeoutMs, columnBytes }, memoryMb);
    this.#threads = Array.from({ length: workers }, () => undefined);
  }

  async run(
    { indices, trial, setups }: TrialBatch,
    onResult: (result: TrialResult) => void,
  ): Promise<void> {
    const count = Math.min(this.#threads.length, indices.length);
    let next = 0;
    const takeChunk = (): readonly Trial[] => {
      const share = Math.ceil(((indices.length - next) / count) * CHUNK_SHARE);
      const taken = indices.subarray(next, next + Math.min(share, MAX_CHUNK));
      next += taken.length;
      return Array.from(taken, trial);
    };
    const work = async (place: number): Promise<void> => {
      let chunk = takeChunk();
      while (chunk.length > 0) {
        const thread = (this.#threads[place] ??= this.#start(setups[0]!.timeoutMs));
        const rest = await thread.run(chunk, setups, onResult);
        if (rest !== undefined) this.#threads[place] = undefined;
        chunk = rest === undefined || rest.length === 0 ? takeChunk() : rest;
      }
    };
    await Promise.all(Array.from({ length: count }, (_, place) => work(place)));
  }

  async end(): Promise<void> {
    const threads = [...this.#threads];
    this.#threads.fill(undefined);
    await Promise.all(threads.map(async (thread) => thread?.end()));
  }
}

/** Runs some work with the runner of the limits, or with a pool whose threads end with the work. */
export async function withTrialPool<T>(
  source: StrategySource,
  limits: TrialLimits,
  work: (runner: TrialRunner) => Promise<T>,
): Promise<T> {
  if (limits.runner !== undefined) return work(limits.runner);
  const pool = new TrialPool(source, limits);
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
