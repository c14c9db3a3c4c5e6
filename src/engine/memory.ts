/** Numbers in a chunk of rows. */
const CHUNK = 12_288;

/**
 * The large arrays of a run. A run that is given the memory of an earlier one takes no more from the
 * system, which many runs in a row would otherwise spend much of their time on, and threads wait for
 * one another to get. Whatever the earlier run answered is overwritten then.
 */
export class EngineMemory {
  #equity = new Float64Array(0);
  readonly #chunks: Float64Array[] = [];
  #taken = 0;

  /** Everything taken so far is free again. */
  reuse(): void {
    this.#taken = 0;
  }

  equity(steps: number): Float64Array {
    if (this.#equity.length < steps) this.#equity = new Float64Array(steps);
    return this.#equity.subarray(0, steps);
  }

  /** Of any content. */
  chunk(): Float64Array {
    this.#taken += 1;
    return (this.#chunks[this.#taken - 1] ??= new Float64Array(CHUNK));
  }
}
