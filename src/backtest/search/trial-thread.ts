import { Worker } from 'node:worker_threads';
import { endThread } from '../../base/end-thread.ts';
import { ServiceError } from '../../base/errors.ts';
import { outOfMemory } from '../../base/strategy-memory.ts';
import { heapLimits, isHeapFull, MB, watchMemory } from '../memory-watch.ts';
import type { StrategySource } from '../strategy-source.ts';
import type { Trial, TrialResult, TrialSetup } from './trial.ts';

/** Data of a worker thread. */
export interface TrialThreadData {
  readonly source: StrategySource;
  /** Time limit of loading the strategy, ms. */
  readonly timeoutMs: number;
  /** Bound on the indicators that the thread keeps for later trials. */
  readonly columnBytes: number;
}

/** Messages to a worker thread: the setups of the next trials, or a chunk of trials. */
export type TrialThreadRequest =
  | { readonly setups: readonly TrialSetup[] }
  | { readonly chunk: readonly Trial[] };

/** Messages of a worker thread: the strategy is loaded, trials have ended, a chunk has ended. */
export type TrialThreadMessage = 'ready' | readonly TrialResult[] | 'done';

/** A worker thread that runs chunks of trials, one chunk at a time. */
export class TrialThread {
  readonly #worker: Worker;
  readonly #memoryMb: number;
  readonly #unwatch: () => void;
  #isReady = false;
  #isFull = false;
  #failure: Error | undefined;
  #setups: readonly TrialSetup[] | undefined;
  #chunk: readonly Trial[] = [];
  #doneInChunk = 0;
  #onResult: (result: TrialResult) => void = () => {};
  /** End of the chunk. */
  #end: PromiseWithResolvers<readonly Trial[] | undefined> | undefined;

  constructor(data: TrialThreadData, memoryMb: number) {
    const file = new URL(`./trial-worker${import.meta.url.slice(-3)}`, import.meta.url);
    const resourceLimits = heapLimits(memoryMb);
    this.#worker = new Worker(file, { workerData: data, stdout: true, resourceLimits });
    this.#memoryMb = memoryMb;
    // Stdout carries the output of the command, so strategies print to stderr.
    this.#worker.stdout.on('data', (text: Buffer) => process.stderr.write(text));
    this.#worker.on('message', (message: TrialThreadMessage) => this.#receive(message));
    this.#worker.on('error', (error: Error) => {
      if (isHeapFull(error)) this.#endFull();
      else this.#fail(workerError(error.message, error));
    });
    this.#worker.on('exit', (code) => {
      if (!this.#isFull) this.#fail(workerError(`exit code ${code}`));
    });
    // Built-in strategies need no memory limit.
    const isOwn = 'module' in data.source;
    const limitMb = memoryMb + data.columnBytes / MB;
    this.#unwatch = isOwn ? watchMemory(this.#worker, limitMb, () => this.#endFull()) : () => {};
  }

  /**
   * @param setups of the trials; the `rung` of a trial is the index of its setup, by default the last
   * @param onResult is called with each result; an error that it throws rejects the run
   * @returns undefined, or if the memory of the thread is full, the rest of the chunk for another thread
   */
  async run(
    chunk: readonly Trial[],
    setups: readonly TrialSetup[],
    onResult: (result: TrialResult) => void,
  ): Promise<readonly Trial[] | undefined> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#chunk = chunk;
    this.#doneInChunk = 0;
    this.#onResult = onResult;
    this.#end = Promise.withResolvers();
    if (setups !== this.#setups) this.#post({ setups });
    this.#setups = setups;
    this.#post({ chunk });
    return this.#end.promise;
  }

  async end(): Promise<void> {
    this.#unwatch();
    await endThread(this.#worker);
  }

  #post(request: TrialThreadRequest): void {
    this.#worker.postMessage(request);
  }

  #receive(message: TrialThreadMessage): void {
    if (message === 'ready') this.#isReady = true;
    else if (message === 'done') this.#end?.resolve(undefined);
    else for (const result of message) this.#pass(result);
  }

  #pass(result: TrialResult): void {
    this.#doneInChunk += 1;
    try {
      this.#onResult(result);
    } catch (error) {
      this.#end?.reject(error);
    }
  }

  #endFull(): void {
    if (this.#isFull) return;
    this.#isFull = true;
    this.#failRunning().catch((error: unknown) => this.#fail(error as Error));
  }

  /** Ends the thread. The trial that it was running fails. */
  async #failRunning(): Promise<void> {
    // Results that the thread has posted arrive before it has ended.
    await this.end();
    const full = outOfMemory(this.#memoryMb);
    const [trial, ...rest] = this.#chunk.slice(this.#doneInChunk);
    if (!this.#isReady || trial === undefined) throw full;
    this.#pass({ ...trial, error: full.message });
    this.#end?.resolve(rest);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#end?.reject(error);
  }
}

function workerError(message: string, cause?: unknown): ServiceError {
  return new ServiceError('strategy_failed', `a worker of the search failed: ${message}`, {
    remedy:
      'Remove calls that end the process from the strategy, do not change its file during the search, and start the command again.',
    cause,
  });
}
