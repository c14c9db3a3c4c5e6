const ROWS_PER_CHUNK = 1024;

/**
 * A growing list of rows of `width` numbers. It grows by whole chunks and copies nothing, and holds
 * no objects, so that a long run gives the garbage collector nothing to do.
 */
export class Rows implements Iterable<Float64Array> {
  readonly #width: number;
  readonly #chunks: Float64Array[] = [];
  #count = 0;
  #offset = 0;
  /** Where the row of the last `append` lies. */
  chunk: Float64Array = new Float64Array(0);

  constructor(width: number) {
    this.#width = width;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds a row of zeros; the offset in `chunk` at which it begins. */
  append(): number {
    this.#offset += this.#width;
    if (this.#offset >= this.chunk.length) {
      this.chunk = new Float64Array(this.#width * ROWS_PER_CHUNK);
      this.#chunks.push(this.chunk);
      this.#offset = 0;
    }
    this.#count += 1;
    return this.#offset;
  }

  *[Symbol.iterator](): Generator<Float64Array> {
    for (let row = 0; row < this.#count; row += 1) {
      const at = (row % ROWS_PER_CHUNK) * this.#width;
      yield this.#chunks[Math.floor(row / ROWS_PER_CHUNK)]!.subarray(at, at + this.#width);
    }
  }
}
