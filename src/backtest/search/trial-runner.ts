import type { Trial, TrialResult, TrialSetup } from './trial.ts';

/** Trials to run, which are created when they are needed. */
export interface TrialBatch {
  /** The `rung` of a trial is the index of its setup, by default the last. */
  readonly setups: readonly TrialSetup[];
  readonly indices: Uint32Array;
  /** Number of trials of the batch before any has ended; by default, the number of indices. */
  readonly batchSize?: number | undefined;
  readonly trial: (index: number) => Trial;
}

/** Runs trials in threads of this process or on other machines, with the same results. */
export interface TrialRunner {
  /**
   * @param onResult is called with each result, in the order of completion. An error that it throws
   *   ends the run.
   * @throws ServiceError `strategy_failed` if a worker fails. The error of a trial is a result instead.
   */
  readonly run: (batch: TrialBatch, onResult: (result: TrialResult) => void) => Promise<void>;
  /** Ends running trials, whose results no longer arrive. */
  readonly end: () => Promise<void>;
}
