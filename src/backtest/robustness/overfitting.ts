import { blockLengths, type BlockSums } from './block-sums.ts';

/**
 * How the trial with the best Sharpe ratio in one half of the blocks performs in the other half, over
 * all halves.
 */
export interface Overfitting {
  /** Share of the halves whose best trial ranks in the lower part of the other half, λ ≤ 0. */
  readonly pbo: number;
  /** Share of the halves whose best trial has a negative Sharpe ratio in the other half. */
  readonly probability_of_loss: number;
  /**
   * Regression of the best trials' Sharpe ratios in the other half on those in the half in which they
   * are best. A slope below 0 indicates overfitting. Null if the ratios do not vary.
   */
  readonly degradation: {
    readonly slope: number;
    readonly intercept: number;
    readonly r_squared: number;
  } | null;
  readonly trials: number;
  readonly blocks: number;
  /** Number of halves. */
  readonly combinations: number;
  /** Relative rank ω as λ = ln(ω / (1 − ω)), for each half in the order of its bit mask. */
  readonly logits: Float64Array;
}

/** A half whose variance is below this share of Σr² has returns that do not vary. */
const LEAST_VARIANCE = 1e-12;

/** Sharpe ratios to compute between two turns of the event loop; they take about 20 ms. */
const SLICE = 4_000_000;

/**
 * Combinatorially symmetric cross-validation: D. H. Bailey, J. Borwein, M. López de Prado and Q. J. Zhu,
 * "The Probability of Backtest Overfitting", J. of Computational Finance 20(4), 2017 (preprint 2015).
 * The Sharpe ratio of returns that do not vary, such as those without a trade, is 0. Of equally good
 * trials, the first one is the best of a half; equal ones share the average of their ranks.
 *
 * @param trials indices in `sums`, at least two
 * @param periodsPerYear for the Sharpe ratios of `degradation`
 * @param onTurn called regularly, with the share that is done
 * @throws what `onTurn` throws
 */
export async function overfittingOf(
  sums: BlockSums,
  trials: Uint32Array,
  periodsPerYear: number,
  onTurn: (share: number) => Promise<void> = async () => {},
): Promise<Overfitting> {
  const scores = new HalfScores(sums);
  const { combinations } = scores;
  const count = trials.length;
  const turnEvery = Math.max(1, Math.floor(SLICE / combinations));
  const best = new Float64Array(combinations).fill(-Infinity);
  const chosen = new Uint32Array(combinations);
  for (let place = 0; place < count; place++) {
    const trial = trials[place]!;
    const own = scores.of(trial);
    for (let half = 0; half < combinations; half++) {
      if (own[half]! <= best[half]!) continue;
      best[half] = own[half]!;
      chosen[half] = trial;
    }
    if (place % turnEvery === 0) await onTurn(place / count / 2);
  }
  const rest = restScores(scores, chosen);
  const less = new Uint32Array(combinations);
  const equal = new Uint32Array(combinations);
  for (let place = 0; place < count; place++) {
    const own = scores.of(trials[place]!);
    for (let half = 0; half < combinations; half++) {
      const score = own[combinations - 1 - half]!;
      if (score < rest[half]!) less[half]!++;
      else if (score === rest[half]!) equal[half]!++;
    }
    if (place % turnEvery === 0) await onTurn((1 + place / count) / 2);
  }
  const logits = Float64Array.from(less, (below, half) => {
    const rank = below + (equal[half]! + 1) / 2;
    return Math.log(rank / (count + 1 - rank));
  });
  const inHalf = best.map((score, half) => scores.sharpe(score, half, periodsPerYear));
  const inRest = rest.map((score, half) =>
    scores.sharpe(score, combinations - 1 - half, periodsPerYear),
  );
  return {
    pbo: shareOf(logits, (logit) => logit <= 0),
    probability_of_loss: shareOf(inRest, (sharpe) => sharpe < 0),
    degradation: lineThrough(inHalf, inRest),
    trials: count,
    blocks: sums.blocks.count,
    combinations,
    logits,
  };
}

/**
 * Scores of a trial in every half of the blocks, in the order of the halves' bit masks, so that half
 * `i` and half `combinations - 1 - i` are complements. A score rises with the Sharpe ratio of the half,
 * without its square root.
 */
class HalfScores {
  readonly #sums: BlockSums;
  /** Bits of the first and of the second part of the blocks, for each half. */
  readonly #low: Uint16Array;
  readonly #high: Uint16Array;
  /** Number of returns of each half. */
  readonly #returns: Float64Array;
  /** Σr and Σr² of every subset of the first and of the second part. */
  readonly #parts: readonly [low: SubsetSums, high: SubsetSums];
  readonly #scores: Float64Array;

  constructor(sums: BlockSums) {
    const part = sums.blocks.count / 2;
    const masks = halvesOf(sums.blocks.count);
    const lengths = blockLengths(sums.blocks);
    this.#sums = sums;
    this.#low = Uint16Array.from(masks, (mask) => mask & (2 ** part - 1));
    this.#high = Uint16Array.from(masks, (mask) => mask >> part);
    const low = subsetSums(lengths.subarray(0, part));
    const high = subsetSums(lengths.subarray(part));
    this.#returns = Float64Array.from(
      masks,
      (_, half) => low[this.#low[half]!]! + high[this.#high[half]!]!,
    );
    this.#parts = [newSubsetSums(part), newSubsetSums(part)];
    this.#scores = new Float64Array(masks.length);
  }

  get combinations(): number {
    return this.#scores.length;
  }

  /** The next call overwrites the result. */
  of(trial: number): Float64Array {
    const blocks = this.#sums.blocks.count;
    const part = blocks / 2;
    const row = this.#sums.row(trial);
    const [low, high] = this.#parts;
    subsetSums(row.subarray(0, part), low.sum);
    subsetSums(row.subarray(part, blocks), high.sum);
    subsetSums(row.subarray(blocks, blocks + part), low.squares);
    subsetSums(row.subarray(blocks + part), high.squares);
    const scores = this.#scores;
    for (let half = 0; half < scores.length; half++) {
      const a = this.#low[half]!;
      const b = this.#high[half]!;
      const sum = low.sum[a]! + high.sum[b]!;
      const squares = low.squares[a]! + high.squares[b]!;
      const variance = squares - (sum * sum) / this.#returns[half]!;
      scores[half] = variance <= squares * LEAST_VARIANCE ? 0 : (sum * Math.abs(sum)) / variance;
    }
    return scores;
  }

  /** Annualized Sharpe ratio (ddof 1) for a score of this half. */
  sharpe(score: number, half: number, periodsPerYear: number): number {
    const n = this.#returns[half]!;
    return Math.sign(score) * Math.sqrt((Math.abs(score) * (n - 1) * periodsPerYear) / (n * n));
  }
}

interface SubsetSums {
  readonly sum: Float64Array;
  readonly squares: Float64Array;
}

function newSubsetSums(part: number): SubsetSums {
  return { sum: new Float64Array(2 ** part), squares: new Float64Array(2 ** part) };
}

/** Sum of every subset of the values, at the subset's bit mask. */
function subsetSums(
  values: Float64Array,
  sums: Float64Array = new Float64Array(2 ** values.length),
): Float64Array {
  sums[0] = 0;
  for (let bit = 0; bit < values.length; bit++) {
    const size = 2 ** bit;
    for (let mask = 0; mask < size; mask++) sums[size + mask] = sums[mask]! + values[bit]!;
  }
  return sums;
}

/** Bit masks with half of the bits set, ascending. */
function halvesOf(blocks: number): number[] {
  const halves: number[] = [];
  for (let mask = 0; mask < 2 ** blocks; mask++) {
    let set = 0;
    for (let rest = mask; rest > 0; rest &= rest - 1) set++;
    if (set === blocks / 2) halves.push(mask);
  }
  return halves;
}

/** Score of each half's chosen trial in the other half. */
function restScores(scores: HalfScores, chosen: Uint32Array): Float64Array {
  const rest = new Float64Array(chosen.length);
  const halves = Map.groupBy(chosen.keys(), (half) => chosen[half]!);
  for (const [trial, own] of halves) {
    const all = scores.of(trial);
    for (const half of own) rest[half] = all[chosen.length - 1 - half]!;
  }
  return rest;
}

function shareOf(values: Float64Array, isCounted: (value: number) => boolean): number {
  return values.reduce((count, value) => count + (isCounted(value) ? 1 : 0), 0) / values.length;
}

/** Least squares. */
function lineThrough(x: Float64Array, y: Float64Array): Overfitting['degradation'] {
  const meanX = x.reduce((sum, value) => sum + value, 0) / x.length;
  const meanY = y.reduce((sum, value) => sum + value, 0) / y.length;
  let xx = 0;
  let xy = 0;
  let yy = 0;
  for (let i = 0; i < x.length; i++) {
    const dx = x[i]! - meanX;
    const dy = y[i]! - meanY;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  if (xx === 0 || yy === 0) return null;
  const slope = xy / xx;
  return { slope, intercept: meanY - slope * meanX, r_squared: (xy * xy) / (xx * yy) };
}
