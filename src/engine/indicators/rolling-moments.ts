import { CompensatedSum, RollingSum, covariance } from './sums.ts';

/** Mean and standard deviation of the last `size` values; undefined until the window is full. */
export class RollingMoments {
  readonly sum: RollingSum;
  private readonly squares = new CompensatedSum();

  constructor(size: number) {
    this.sum = new RollingSum(size);
  }

  get full(): boolean {
    return this.sum.full;
  }

  get mean(): number {
    return this.sum.mean;
  }

  /** Standard deviation of the population. A flat window gives exactly 0. */
  get deviation(): number {
    const { sum, squares } = this;
    const variance = covariance(squares, sum, sum);
    // If the spread is below 1e-7 of the level, cancellation leaves so few digits that the last
    // bits of a former outlier could show. The deviation is then computed from the window, in
    // linear time.
    const trusted = variance > (1e-14 * squares.high) / sum.size;
    return Math.sqrt(trusted ? variance : varianceOf(sum.values, sum.mean));
  }

  /** Returns the value that leaves the window; 0 until it is full. */
  push(entering: number): number {
    const leaving = this.sum.push(entering);
    this.squares.addProduct(entering, entering);
    this.squares.addProduct(-leaving, leaving);
    return leaving;
  }
}

function varianceOf(values: Float64Array, mean: number): number {
  let squares = 0;
  for (const value of values) squares += (value - mean) ** 2;
  return squares / values.length;
}
