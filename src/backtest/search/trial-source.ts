import type { SkippedCombinations } from './skipped-combinations.ts';
import type { TrialResults } from './trial-results.ts';
import type { Trial } from './trial.ts';

/** The trials of a search, which come in generations. */
export interface TrialSource {
  /** Maximum number of trials. */
  readonly capacity: number;
  /** Number of trials so far. */
  readonly count: number;
  /** Trials of a generation; all are in one if undefined. */
  readonly generationSize?: number | undefined;
  readonly skipped: SkippedCombinations;
  trial(index: number): Trial;
  /**
   * Adds a generation and returns its indices, none after the last one. May depend on the results of all
   * earlier generations.
   */
  nextGeneration(results: TrialResults): Uint32Array;
}
