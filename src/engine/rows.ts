import type { EngineMemory } from './memory.ts';

/**
 * A growing list of rows of `width` numbers. It grows by whole chunks and copies nothing, and holds
 * no objects, so that a long run gives the garbage collector nothing to do.
 */
export class Rows implements Iterable<Float64Array> {
  readonly #width: number;
  readonly #memory: EngineMemory;
  readonly #chunks: Float64Array[] = [];
  #count = 0;
  #offset = 0;
  /** Where the row of the last `append` lies. */
  chunk: Float64Array = new Float64Array(0);

  constructor(width: number, memory: EngineMemory) {
    this.#width = width;
    this.#memory = memory;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds a row of any content, to be written; the offset in `chunk` at which it begins. */
  append(): number {
    this.#offset += this.#width;
    if (this.#offset + this.#width > this.chunk.length) {
      this.chunk = this.#memory.chunk();
      this.#chunks.push(this.chunk);
      this.#offset = 0;
    }
    this.#count += 1;
    return this.#offset;
  }

  *[Symbol.iterator](): Generator<Float64Array> {
    let left = this.#count;
    for (const chunk of this.#chunks) {
      for (let at = 0; left > 0 && at + this.#width <= chunk.length; at += this.#width) {
        left -= 1;
        yield chunk.subarray(at, at + this.#width);
      }
    }
  }
}
