import { MB } from '../memory-watch.ts';
import type { StrategySource } from '../strategy-source.ts';
import { TrialThread } from './trial-thread.ts';
import type { Trial, TrialResult, TrialSetup } from './trial.ts';

export interface TrialLimits {
  /** Number of threads. */
  readonly workers: number;
  /** Memory of one run, as in `StrategyLimits`. */
  readonly memoryMb: number;
  /** Memory of all workers together for the indicators that they keep for later trials. */
  readonly columnMb: number;
}

/**
 * Share of a worker's part of the remaining trials that it receives at once. Chunks shrink toward the
 * end, so that all workers finish at about the same time.
 */
const CHUNK_SHARE = 1 / 4;
/** Maximum number of trials in a chunk, since a worker receives them as objects. */
const MAX_CHUNK = 256;

/** Trials to run, which are created when a worker receives them. */
export interface TrialBatch {
  /** The `rung` of a trial is the index of its setup, by default the last. */
  readonly setups: readonly TrialSetup[];
  readonly indices: Uint32Array;
  readonly trial: (index: number) => Trial;
}

/**
 * Worker threads that share the memory of the bars. They start with the first trial, and later batches
 * use them again. The result of a trial does not depend on its worker or on the order of trials.
 */
export class TrialPool {
  readonly #start: (timeoutMs: number) => TrialThread;
  readonly #threads: (TrialThread | undefined)[];

  constructor(source: StrategySource, { workers, memoryMb, columnMb }: TrialLimits) {
    const columnBytes = (columnMb * MB) / workers;
    this.#start = (timeoutMs) => new TrialThread({ source, timeoutMs, columnBytes }, memoryMb);
    this.#threads = Array.from({ length: workers }, () => undefined);
  }

  /**
   * @param onResult is called with each result, in the order of completion. An error that it throws
   *   ends the run.
   * @throws ServiceError `strategy_failed` if a worker fails. The error of a trial is a result instead.
   */
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

/** Runs some work with a pool, whose threads end with it. */
export async function withTrialPool<T>(
  source: StrategySource,
  limits: TrialLimits,
  work: (pool: TrialPool) => Promise<T>,
): Promise<T> {
  const pool = new TrialPool(source, limits);
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
