/** The newest messages of a stream by their numbers, which count up by 1 from the first. */
export class Tape<T> {
  readonly #items: (T | undefined)[] = [];
  readonly #depth: number;
  /** Number of the newest. */
  last = 0;

  /** @param depth how many are kept. */
  constructor(depth: number) {
    this.#depth = depth;
  }

  push(item: T): void {
    this.#items[this.last % this.#depth] = item;
    this.last += 1;
  }

  /** Undefined for one that is not kept any more, or has not been. */
  get(number: number): T | undefined {
    const isKept = number > this.last - this.#depth && number <= this.last && number > 0;
    return isKept ? this.#items[(number - 1) % this.#depth] : undefined;
  }
}
