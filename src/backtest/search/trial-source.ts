import type { SkippedCombinations } from './skipped-combinations.ts';
import type { TrialResults } from './trial-results.ts';
import type { Trials } from './trial.ts';

/** The trials of a search, which come in generations. */
export interface TrialSource extends Trials {
  /** Number of trials in a generation; undefined if there is one generation. */
  readonly generationSize?: number | undefined;
  /** Largest number of trials that `nextGeneration` returns. */
  readonly batchSize: number;
  readonly skipped: SkippedCombinations;
  /**
   * Adds a generation and returns its indices, none after the last one. May depend on the results of all
   * earlier generations.
   */
  nextGeneration(results: TrialResults): Uint32Array;
}
