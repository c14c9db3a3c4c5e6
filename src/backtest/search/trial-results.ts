import { BlockSums, type ReturnBlocks } from '../robustness/block-sums.ts';
import { meets, rankTrials, type Ranking } from './rank-trials.ts';
import type { Goal } from './goal.ts';
import {
  metricsFrom,
  TRIAL_FIGURES,
  type TrialFigureName,
  type TrialMetrics,
} from './trial-figures.ts';
import type { Trial, TrialResult, Trials } from './trial.ts';

const WIDTH = TRIAL_FIGURES.length;
const PLACES = new Map(TRIAL_FIGURES.map((name, place) => [name, place]));
export type RankedTrial = Trial & { readonly metrics: TrialMetrics; readonly front: number };

/**
 * Results of the trials of a search by index, as rows of numbers: a million of them take 112 MB. `null` is
 * stored as NaN, which is never a figure.
 *
 * A rung is a part of the bars from the first one on; the last rung has all bars. Without pruning, it is
 * the only one.
 */
export class TrialResults {
  /** Sums of the returns of the trials, if the search has blocks. */
  readonly sums: BlockSums | undefined;
  readonly #trials: Trials;
  readonly lastRung: number;
  /** Rows of figures of each rung. */
  readonly #figures: (Float64Array | undefined)[];
  /** For each trial, bit `r` is set if it has figures of rung `r`. */
  readonly #rungs: Uint8Array;
  readonly #isPruned: Uint8Array;
  /** Messages of failed trials, in the order of completion. */
  readonly #errors = new Map<number, string>();
  /** Parameters of recalled trials, in JSON. */
  readonly #recalled = new Map<number, string>();
  #completed = 0;
  #pruned = 0;

  constructor(
    trials: Trials,
    {
      rungs = 1,
      blocks,
    }: { readonly rungs?: number; readonly blocks?: ReturnBlocks | undefined } = {},
  ) {
    this.sums = blocks && new BlockSums(blocks, trials.capacity);
    this.#trials = trials;
    this.lastRung = rungs - 1;
    this.#figures = Array.from({ length: rungs }, () => undefined);
    this.#rungs = new Uint8Array(trials.capacity);
    this.#isPruned = new Uint8Array(trials.capacity);
  }

  /** Number of trials that have ended, failed and pruned ones included. */
  get done(): number {
    return this.#completed + this.failed + this.#pruned;
  }

  /** Number of trials with figures over all bars. */
  get completed(): number {
    return this.#completed;
  }

  get failed(): number {
    return this.#errors.size;
  }

  get pruned(): number {
    return this.#pruned;
  }

  get isComplete(): boolean {
    return this.done === this.#trials.capacity;
  }

  /** Message of the trial that failed first. */
  get firstError(): string | undefined {
    return this.#errors.values().next().value;
  }

  /** Whether a trial has figures of this rung, or has failed. */
  has(index: number, rung = this.lastRung): boolean {
    return ((this.#rungs[index]! >> rung) & 1) === 1 || this.#errors.has(index);
  }

  hasFailed(index: number): boolean {
    return this.#errors.has(index);
  }

  add(result: TrialResult): void {
    const { index, rung = this.lastRung } = result;
    if ('error' in result) {
      this.#errors.set(index, result.error);
      return;
    }
    const figures = (this.#figures[rung] ??= new Float64Array(this.#rungs.length * WIDTH));
    TRIAL_FIGURES.forEach((name, place) => {
      figures[index * WIDTH + place] = result.metrics[name] ?? Number.NaN;
    });
    if (result.sums !== undefined) this.sums?.set(index, result.sums);
    if (rung === this.lastRung && !this.has(index)) this.#completed++;
    this.#rungs[index]! |= 1 << rung;
  }

  /** Ends a trial at a rung for which it has figures. */
  prune(index: number, rung: number): void {
    if (this.has(index)) this.#completed--;
    this.#rungs[index]! &= (1 << (rung + 1)) - 1;
    this.#isPruned[index] = 1;
    this.#pruned++;
  }

  /** Adds a trial of an earlier run. Its parameters may differ if earlier trials have other results now. */
  recall(result: TrialResult): void {
    this.add(result);
    this.#recalled.set(result.index, JSON.stringify(result.params));
  }

  /** Drops the figures that an earlier run recorded for other parameters. */
  forgetIfOther({ index, params }: Trial): void {
    const recalled = this.#recalled.get(index);
    if (recalled === undefined || recalled === JSON.stringify(params)) return;
    if (this.has(index)) this.#completed--;
    this.#rungs[index] = 0;
  }

  /** A figure of a trial, NaN if it is undefined. @param rung by default the last one of the trial */
  figure(index: number, name: TrialFigureName, rung = this.#rungOf(index)): number {
    return this.#figures[rung]![index * WIDTH + PLACES.get(name)!]!;
  }

  /** Indices of the trials with figures over all bars. */
  get ranked(): Uint32Array {
    return this.endedAt(this.lastRung);
  }

  /** Indices of the trials with figures that have ended at this rung. */
  endedAt(rung: number): Uint32Array {
    const isEnd = rung === this.lastRung ? 0 : 1;
    return this.#indices(
      (index) =>
        this.#rungOf(index) === rung && this.#isPruned[index] === isEnd && !this.hasFailed(index),
    );
  }

  /** The results of trials that have ended, in the order of trials. */
  *inOrder(): Generator<TrialResult> {
    for (let index = 0; index < this.#trials.count; index++) {
      const trial = this.#trials.trial(index);
      const error = this.#errors.get(index);
      if (error !== undefined) yield { ...trial, error };
      else if (this.#isPruned[index] === 1 || this.has(index)) {
        yield { ...trial, rung: this.#rungOf(index), metrics: this.metrics(index) };
      }
    }
  }

  /** Ranks the trials with figures over all bars that meet the constraints. */
  ranking(goal: Goal): Ranking {
    const figureOf = (index: number, name: TrialFigureName): number => this.figure(index, name);
    const indices = this.ranked.filter((index) => meets(goal.constraints, index, figureOf));
    return rankTrials(indices, figureOf, goal);
  }

  /** The first trials of a ranking. */
  take({ order, fronts }: Ranking, count: number): RankedTrial[] {
    return Array.from(order.subarray(0, count), (index, place) => ({
      ...this.#trials.trial(index),
      metrics: this.metrics(index),
      front: fronts[place]!,
    }));
  }

  /** The best trial; undefined if no trial meets the constraints. */
  best(goal: Goal): RankedTrial | undefined {
    return this.take(this.ranking(goal), 1)[0];
  }

  /** Indices of the trials that have ended, failed and pruned ones included. */
  get ended(): Uint32Array {
    return this.#indices((index) => this.#isPruned[index] === 1 || this.has(index));
  }

  /** The figures of the last rung of a trial. */
  metrics(index: number): TrialMetrics {
    return metricsFrom((name) => orNull(this.figure(index, name)));
  }

  /** The last rung of a trial so far; −1 without figures. */
  #rungOf(index: number): number {
    return 31 - Math.clz32(this.#rungs[index]!);
  }

  #indices(isWanted: (index: number) => boolean): Uint32Array {
    const indices = new Uint32Array(this.#trials.count);
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
