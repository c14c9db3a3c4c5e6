import { EngineMemory } from './memory.ts';

/** Rows as plain data, for another thread. */
export interface RowsData {
  readonly chunks: readonly Float64Array[];
  readonly count: number;
}

/**
 * A growing list of rows of `width` numbers. It grows by whole chunks without copies, and holds no
 * objects, so that a long run leaves nothing to the garbage collector.
 */
export class Rows {
  readonly #width: number;
  readonly #memory: EngineMemory;
  readonly #chunks: Float64Array[] = [];
  #count = 0;
  #offset = 0;
  /** Chunk that contains the last row. */
  chunk: Float64Array = new Float64Array(0);

  constructor(width: number, memory: EngineMemory) {
    this.#width = width;
    this.#memory = memory;
  }

  /** Rows for reading only. */
  static from(width: number, { chunks, count }: RowsData): Rows {
    const rows = new Rows(width, new EngineMemory());
    rows.#chunks.push(...chunks);
    rows.#count = count;
    rows.chunk = chunks.at(-1) ?? rows.chunk;
    return rows;
  }

  get data(): RowsData {
    return { chunks: this.#chunks, count: this.#count };
  }

  get count(): number {
    return this.#count;
  }

  /** Adds a row with undefined content. Returns its offset in `chunk`. */
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

  /** Row `index`, from 0, as a view. */
  row(index: number): Float64Array {
    const rowsPerChunk = Math.floor(this.chunk.length / this.#width);
    const at = (index % rowsPerChunk) * this.#width;
    return this.#chunks[Math.floor(index / rowsPerChunk)]!.subarray(at, at + this.#width);
  }

  /** Returns what `read` makes of each row, which begins at `at` in a chunk. */
  map<T>(read: (chunk: Float64Array, at: number) => T): T[] {
    const results: T[] = [];
    this.forEach((chunk, at) => results.push(read(chunk, at)));
    return results;
  }

  forEach(visit: (chunk: Float64Array, at: number) => void): void {
    let left = this.#count;
    for (const chunk of this.#chunks) {
      for (let at = 0; left > 0 && at + this.#width <= chunk.length; at += this.#width) {
        visit(chunk, at);
        left -= 1;
      }
    }
  }

  /** All rows except the first `skipped`, in order. A row is valid until the next one is requested. */
  *after(skipped: number): Generator<Float64Array> {
    const row = new Float64Array(this.#width);
    const rowsPerChunk = Math.floor(this.chunk.length / this.#width);
    for (let index = skipped; index < this.#count; index += 1) {
      const chunk = this.#chunks[Math.floor(index / rowsPerChunk)]!;
      const at = (index % rowsPerChunk) * this.#width;
      // Copying a row is faster than creating a view of it.
      for (let place = 0; place < row.length; place += 1) row[place] = chunk[at + place]!;
      yield row;
    }
  }
}
