import { normalCdf, normalQuantile } from '../normal.ts';
import type { Cell } from './axis-positions.ts';

interface Kernel {
  readonly center: number;
  readonly width: number;
  /** Probability of the positions below 0, and between 0 and 1, before truncation. */
  readonly below: number;
  readonly within: number;
}

/** Narrowest kernel of a density of `n` observations, as a share of the axis. */
const narrowest = (n: number): number => 1 / Math.min(100, n + 2);

/**
 * A density over positions from 0 to 1: the mean of normal kernels at the observed positions and of a
 * wide one in the middle, each truncated to the axis. The width of a kernel is the distance to its
 * farther neighbor, and at least the width of its cell. The density is thus smooth over the values of
 * a list. J. Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NIPS 24, 2011.
 */
export class ParzenDensity {
  readonly #kernels: readonly Kernel[];

  constructor(observed: readonly Cell[]) {
    const cells = observed.toSorted((a, b) => a.from - b.from);
    const least = narrowest(cells.length);
    const kernels = cells.map((cell, i) => {
      const center = middleOf(cell);
      const left = center - (i === 0 ? 0 : middleOf(cells[i - 1]!));
      const right = (i === cells.length - 1 ? 1 : middleOf(cells[i + 1]!)) - center;
      return kernelAt(center, Math.min(1, Math.max(left, right, least, cell.to - cell.from)));
    });
    this.#kernels = [...kernels, kernelAt(0.5, 1)];
  }

  /** Draws a position below 1. @param random uniform in [0, 1) */
  draw(random: () => number): number {
    const place = Math.floor(random() * this.#kernels.length);
    const { center, width, below, within } = this.#kernels[place]!;
    const position = center + width * normalQuantile(below + random() * within);
    return Math.min(1 - Number.EPSILON, Math.max(0, position));
  }

  /** Relative density at a position. */
  at(position: number): number {
    let sum = 0;
    for (const { center, width, within } of this.#kernels) {
      const distance = (position - center) / width;
      sum += Math.exp((-distance * distance) / 2) / (width * within);
    }
    return sum;
  }
}

function kernelAt(center: number, width: number): Kernel {
  const below = normalCdf(-center / width);
  return { center, width, below, within: normalCdf((1 - center) / width) - below };
}

export const middleOf = ({ from, to }: Cell): number => (from + to) / 2;
