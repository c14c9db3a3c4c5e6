import { normalCdf, normalQuantile } from '../normal.ts';
import type { Cell } from './axis-positions.ts';

interface Kernel {
  readonly center: number;
  readonly width: number;
  /** Cumulative probabilities of the untruncated kernel at 0 and 1. */
  readonly below: number;
  readonly within: number;
}

/** Narrowest kernel of an estimator of `n` points, as a share of the axis. */
const narrowest = (n: number): number => 1 / Math.min(100, n + 2);

/**
 * A density over positions from 0 to 1: the mean of normal kernels at the observed positions and of a
 * wide one in the middle, each truncated to the axis. The width of a kernel is the distance to its
 * farther neighbor. J. Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NIPS 24, 2011.
 */
export class ParzenDensity {
  readonly #kernels: readonly Kernel[];

  constructor(observed: readonly Cell[]) {
    const prior = 0.5;
    const centers = [...observed.map(({ from, to }) => (from + to) / 2), prior].sort(
      (a, b) => a - b,
    );
    const least = narrowest(observed.length);
    const atPrior = centers.indexOf(prior);
    this.#kernels = centers.map((center, i) => {
      const left = center - (centers[i - 1] ?? 0);
      const right = (centers[i + 1] ?? 1) - center;
      const width = i === atPrior ? 1 : Math.min(1, Math.max(left, right, least));
      const below = normalCdf(-center / width);
      return { center, width, below, within: normalCdf((1 - center) / width) - below };
    });
  }

  /** Draws a position below 1. @param random uniform in [0, 1) */
  draw(random: () => number): number {
    const place = Math.floor(random() * this.#kernels.length);
    const { center, width, below, within } = this.#kernels[place]!;
    const position = center + width * normalQuantile(below + random() * within);
    return Math.min(1 - Number.EPSILON, Math.max(0, position));
  }

  /** Probability of a cell; on a continuous axis, the density there. */
  weight({ from, to }: Cell): number {
    let sum = 0;
    for (const { center, width, within } of this.#kernels) {
      const [a, b] = [(from - center) / width, (to - center) / width];
      const share = from === to ? Math.exp((-a * a) / 2) / width : normalCdf(b) - normalCdf(a);
      sum += share / within;
    }
    return sum / this.#kernels.length;
  }
}
