/** Numbers in a chunk of rows. */
const CHUNK = 12_288;

/**
 * The large arrays of a run. Many runs in a row can use the same memory, since allocation
 * takes much of their time and makes threads wait for each other. A run overwrites the result of the
 * one before.
 */
export class EngineMemory {
  #equity = new Float64Array(0);
  readonly #chunks: Float64Array[] = [];
  #taken = 0;

  /** Makes all chunks available again. */
  reuse(): void {
    this.#taken = 0;
  }

  equity(steps: number): Float64Array {
    if (this.#equity.length < steps) this.#equity = new Float64Array(steps);
    return this.#equity.subarray(0, steps);
  }

  /** Returns a chunk with undefined content. */
  chunk(): Float64Array {
    this.#taken += 1;
    return (this.#chunks[this.#taken - 1] ??= new Float64Array(CHUNK));
  }
}
