import { exceeds } from './limits.ts';

/**
 * The price from which the price collar is measured: the last close that was within the collar of the
 * reference before it. If two closes in a row are beyond it on the same side, the second one becomes the
 * reference. A single wrong price therefore does not move the collar.
 */
export class ReferencePrice {
  readonly #most: number;
  #price = Number.NaN;
  #doubtful = Number.NaN;
  #followed = 0;

  /** @param bps width of the collar. */
  constructor(bps: number) {
    this.#most = bps / 10_000;
  }

  /** The reference after `count` closes; NaN before the first. Closes are read only when an order needs it. */
  after(count: number, closes: Float64Array): number {
    for (; this.#followed < count; this.#followed += 1) this.#take(closes[this.#followed]!);
    return this.#price;
  }

  #take(close: number): void {
    if (!(close > 0 && close < Infinity)) return;
    const before = this.#price;
    const isNear = !exceeds(Math.abs(close / before - 1), this.#most);
    const isConfirmed = !Number.isNaN(this.#doubtful) && close > before === this.#doubtful > before;
    if (isNear || isConfirmed) {
      this.#price = close;
      this.#doubtful = Number.NaN;
    } else this.#doubtful = close;
  }
}
