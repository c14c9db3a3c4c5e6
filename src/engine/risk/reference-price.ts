import { exceeds } from './limits.ts';

/**
 * The price that prices of orders are measured from: the last close, unless it is farther from the
 * one before than the collar allows. Such a close counts once the next one lies on its side, so that
 * a single bad print does not move the collar.
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

  /** The reference after `count` closes, which are read only when an order needs it; NaN before any. */
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
