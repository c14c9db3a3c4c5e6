/** A division of the returns of every trial into consecutive blocks of equal length, up to one return. */
export interface ReturnBlocks {
  /** Number of blocks; even. */
  readonly count: number;
  /** Number of returns of a trial. */
  readonly returns: number;
}

/**
 * Sums of the returns of trials in each block: enough for the Sharpe ratio of any combination of blocks.
 * A million trials with 16 blocks take 256 MB.
 */
export class BlockSums {
  readonly blocks: ReturnBlocks;
  readonly #width: number;
  /** For each trial, Σr of each block and then Σr² of each block. */
  readonly #rows: Float64Array;

  /** @param trials greatest number of trials */
  constructor(blocks: ReturnBlocks, trials: number) {
    this.blocks = blocks;
    this.#width = 2 * blocks.count;
    this.#rows = new Float64Array(this.#width * trials);
  }

  /** @param row of `blockSumsOf` */
  set(trial: number, row: Float64Array): void {
    this.#rows.set(row, this.#width * trial);
  }

  /** Σr and then Σr² of each block of a trial. The array shares memory with this object. */
  row(trial: number): Float64Array {
    return this.#rows.subarray(this.#width * trial, this.#width * (trial + 1));
  }
}

/** Number of returns in each block. */
export function blockLengths(blocks: ReturnBlocks): Float64Array {
  return Float64Array.from(
    { length: blocks.count },
    (_, block) => startOf(block + 1, blocks) - startOf(block, blocks),
  );
}

/**
 * Σr and then Σr² of each block. Returns that are missing at the end, after the loss of an account,
 * count as 0.
 */
export function blockSumsOf(returns: Float64Array, blocks: ReturnBlocks): Float64Array {
  const { count } = blocks;
  const row = new Float64Array(2 * count);
  for (let block = 0; block < count; block++) {
    const to = Math.min(returns.length, startOf(block + 1, blocks));
    for (let i = startOf(block, blocks); i < to; i++) {
      const value = returns[i]!;
      row[block]! += value;
      row[count + block]! += value * value;
    }
  }
  return row;
}

function startOf(block: number, { count, returns }: ReturnBlocks): number {
  return Math.floor((block * returns) / count);
}
