import type { Grid } from './grid.ts';
import { BlockSums, type ReturnBlocks } from '../robustness/block-sums.ts';
import { metricsFrom, TRIAL_FIGURES } from './trial.ts';
import type { TrialFigures, TrialMetrics, TrialResult } from './trial.ts';

const WIDTH = TRIAL_FIGURES.length;

/**
 * Results of the trials of a sweep by index, as rows of numbers: a million of them take 112 MB. `null` is
 * stored as NaN, which is never a figure.
 */
export class TrialResults {
  /** Sums of the returns of the trials, if the search has blocks. */
  readonly sums: BlockSums | undefined;
  readonly #grid: Grid;
  readonly #figures: Float64Array;
  /** 1 for trials with figures. */
  readonly #isRanked: Uint8Array;
  /** Messages of failed trials, in the order of completion. */
  readonly #errors = new Map<number, string>();
  #rankedCount = 0;

  constructor(grid: Grid, blocks?: ReturnBlocks) {
    this.sums = blocks && new BlockSums(blocks, grid.count);
    this.#grid = grid;
    this.#figures = new Float64Array(grid.count * WIDTH);
    this.#isRanked = new Uint8Array(grid.count);
  }

  /** Number of trials of the sweep. */
  get count(): number {
    return this.#grid.count;
  }

  /** Number of trials that have ended, failed ones included. */
  get done(): number {
    return this.#rankedCount + this.failed;
  }

  get failed(): number {
    return this.#errors.size;
  }

  get isComplete(): boolean {
    return this.done === this.#grid.count;
  }

  /** Message of the trial that failed first. */
  get firstError(): string | undefined {
    return this.#errors.values().next().value;
  }

  /** Indices of the trials that have not ended. */
  get pending(): Uint32Array {
    return this.#indices((index) => !this.has(index));
  }

  /** Indices of the trials with figures. */
  get ranked(): Uint32Array {
    return this.#indices((index) => this.#isRanked[index] === 1);
  }

  has(index: number): boolean {
    return this.#isRanked[index] === 1 || this.#errors.has(index);
  }

  add(index: number, result: TrialFigures | { readonly error: string }): void {
    if ('error' in result) {
      this.#errors.set(index, result.error);
      return;
    }
    TRIAL_FIGURES.forEach((name, place) => {
      this.#figures[index * WIDTH + place] = result.metrics[name] ?? Number.NaN;
    });
    if (result.sums !== undefined) this.sums?.set(index, result.sums);
    if (this.#isRanked[index] === 0) this.#rankedCount++;
    this.#isRanked[index] = 1;
  }

  /** Trials that have ended, in the order of the grid. */
  *inOrder(): Generator<TrialResult> {
    for (let index = 0; index < this.#grid.count; index++) {
      const error = this.#errors.get(index);
      if (error !== undefined) yield { ...this.#grid.trial(index), error };
      else if (this.#isRanked[index] === 1) yield this.#ranked(index);
    }
  }

  /** The trials with the highest Sharpe ratios, highest first, at most `count`. */
  best(count: number): (TrialResult & { readonly metrics: TrialMetrics })[] {
    const sharpe = (index: number): number => this.#sharpe(index) ?? -Infinity;
    const indices = this.ranked;
    indices.sort((a, b) => sharpe(b) - sharpe(a) || a - b);
    return Array.from(indices.subarray(0, count), (index) => this.#ranked(index));
  }

  /** Sharpe ratio of every trial that has ended; null if it is undefined. */
  sharpes(): (number | null)[] {
    return Array.from(
      this.#indices((index) => this.has(index)),
      (index) => (this.#isRanked[index] === 1 ? this.#sharpe(index) : null),
    );
  }

  #sharpe(index: number): number | null {
    return orNull(this.#figures[index * WIDTH + TRIAL_FIGURES.indexOf('sharpe')]!);
  }

  #ranked(index: number): TrialResult & { readonly metrics: TrialMetrics } {
    const metrics = metricsFrom((_, place) => orNull(this.#figures[index * WIDTH + place]!));
    return { ...this.#grid.trial(index), metrics };
  }

  #indices(isWanted: (index: number) => boolean): Uint32Array {
    const indices = new Uint32Array(this.#grid.count);
    let found = 0;
    for (let index = 0; index < indices.length; index++) {
      if (isWanted(index)) indices[found++] = index;
    }
    return indices.subarray(0, found);
  }
}

function orNull(figure: number): number | null {
  return Number.isNaN(figure) ? null : figure;
}
