import { seededRandom } from '../../engine/random.ts';
import type { Params, ParamValues } from '../../engine/params.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { faultOf, type Axis, type ParamValue } from './axes.ts';
import { positionsOf, type AxisPositions } from './axis-positions.ts';
import type { Goal } from './goal.ts';
import { SkippedCombinations } from './skipped-combinations.ts';
import { splitTrials } from './split-trials.ts';
import { fitTpe } from './tpe.ts';
import type { TrialResults } from './trial-results.ts';
import type { TrialSource } from './trial-source.ts';
import type { Trial } from './trial.ts';

/**
 * Number of trials in a generation. It does not depend on the number of workers, and therefore neither
 * do the proposals. With smaller generations, `tpe` learns sooner, but more workers wait for the last trial.
 */
const GENERATION_SIZE = 16;
/** After this many repeated or invalid proposals in a row, the search has no further trial. */
const MAX_ATTEMPTS = 1000;
/** After this many in a row, the proposals of `tpe` give way to random ones. */
const GUIDED_ATTEMPTS = 100;

type Point = readonly ParamValue[];
type Propose = (random: () => number) => Point;

export interface SamplerOptions {
  readonly kind: 'random' | 'tpe';
  /** Number of trials. */
  readonly trials: number;
  /** Whole number below 2^32. */
  readonly seed: number;
  readonly goal: Goal;
  /** Whether trials of a generation are ended early, so that later generations are compared separately. */
  readonly prune?: boolean | undefined;
}

/** Trials with random parameters; from the second generation on, `tpe` proposes them. */
export class SampledTrials implements TrialSource {
  readonly generationSize = GENERATION_SIZE;
  readonly skipped = new SkippedCombinations();
  readonly #strategy: Strategy;
  readonly #base: ParamValues<Params>;
  readonly #axes: readonly Axis[];
  readonly #positions: readonly AxisPositions[];
  readonly #options: SamplerOptions;
  readonly #random: () => number;
  readonly #points: Point[] = [];
  readonly #seen = new Set<string>();
  #isExhausted = false;

  constructor(
    strategy: Strategy,
    base: ParamValues<Params>,
    axes: readonly Axis[],
    options: SamplerOptions,
  ) {
    this.#strategy = strategy;
    this.#base = base;
    this.#axes = axes;
    this.#positions = axes.map(positionsOf);
    this.#options = options;
    this.#random = seededRandom(options.seed);
  }

  get capacity(): number {
    return this.#isExhausted ? this.#points.length : this.#options.trials;
  }

  /** Random trials depend on no other ones, so that all can run at once. */
  get batchSize(): number {
    const { kind, prune } = this.#options;
    const isFree = kind === 'random' && !prune;
    return isFree ? this.capacity : Math.min(this.capacity, GENERATION_SIZE);
  }

  get count(): number {
    return this.#points.length;
  }

  trial(index: number): Trial {
    return { index, params: this.#params(this.#points[index]!) };
  }

  nextGeneration(results: TrialResults): Uint32Array {
    const first = this.#points.length;
    const end = Math.min(this.capacity, first + this.batchSize);
    const fit = this.#fitter(results);
    while (this.#points.length < end) {
      const point = this.#newPoint(fit());
      if (point === undefined) {
        this.#isExhausted = true;
        break;
      }
      this.#points.push(point);
    }
    return Uint32Array.from({ length: this.#points.length - first }, (_, i) => first + i);
  }

  /** Returns a function that prepares the proposals for the next trial of a generation. */
  #fitter(results: TrialResults): () => Propose {
    const ended = this.#points.length;
    if (this.#options.kind === 'random' || ended === 0) return () => this.#proposeAny;
    const { good, others } = splitTrials(results, ended, this.#options.goal);
    const pointsOf = (indices: readonly number[]): Point[] =>
      indices.map((index) => this.#points[index]!);
    const [goodPoints, otherPoints] = [pointsOf(good), pointsOf(others)];
    // Trials of this generation count as bad ones, so that the generation spreads ("constant liar":
    // D. Ginsbourger et al., "Kriging Is Well-Suited to Parallelize Optimization", 2010).
    return () =>
      fitTpe(this.#positions, goodPoints, [...otherPoints, ...this.#points.slice(ended)]);
  }

  /** A valid point that no trial has; undefined if none is found. */
  #newPoint(propose: Propose): Point | undefined {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const isGuided = attempt < GUIDED_ATTEMPTS;
      const point = (isGuided ? propose : this.#proposeAny)(this.#random);
      const key = JSON.stringify(point);
      if (this.#seen.has(key)) continue;
      this.#seen.add(key);
      const fault = this.#faultOf(point);
      if (fault === undefined) return point;
      this.skipped.add(fault);
    }
    return undefined;
  }

  readonly #proposeAny: Propose = (random) => this.#positions.map((axis) => axis.value(random()));

  #faultOf(point: Point): string | undefined {
    for (const [k, { name }] of this.#axes.entries()) {
      const fault = faultOf(name, this.#strategy.params[name]!, point[k]!);
      if (fault !== undefined) return `${name} ${fault}`;
    }
    return this.#strategy.check?.(this.#params(point));
  }

  #params(point: Point): ParamValues<Params> {
    const chosen = this.#axes.map(({ name }, k) => [name, point[k]!]);
    return { ...this.#base, ...Object.fromEntries(chosen) };
  }
}
