/**
 * Running sums that keep what rounding takes from them: `high + low` carries about 106 bits. What
 * was added and is later subtracted leaves no trace, however much time or whatever magnitudes lie
 * between, so a rolling figure depends on its window alone and not on where the run began.
 *
 * The error-free sums and products are those of Knuth (TAOCP 2, §4.2.2) and Dekker (1971), put
 * together as in Ogita, Rump and Oishi, "Accurate Sum and Dot Product" (2005). They hold for
 * magnitudes below 1e300. It is all in one file because V8 inlines small functions of the same
 * module at no cost, those of another not quite.
 */
export class CompensatedSum {
  // -0 is neutral in addition like 0, but a double from the start.
  high = -0;
  low = -0;

  add(x: number): void {
    const { high } = this;
    const sum = high + x;
    this.low += sumError(high, x, sum);
    this.high = sum;
  }

  addProduct(a: number, b: number): void {
    const product = a * b;
    this.add(product);
    this.low += productError(a, b, product);
  }

  /** Rounded once if the divisor is a whole number below 2^27. */
  dividedBy(divisor: number): number {
    return quotient(this.high, this.low, divisor);
  }
}

/** Splits a double into two halves of 26 bits (Dekker). */
const SPLITTER = 2 ** 27 + 1;

/** The last `size` values in a ring, and their sum. */
export class RollingSum {
  readonly size: number;
  private readonly inverse: number;
  /** In ring order. */
  readonly values: Float64Array;
  high = -0;
  low = -0;
  private missing: number;
  private at = 0;

  constructor(size: number) {
    this.size = size;
    this.inverse = 1 / size;
    this.values = new Float64Array(size);
    this.missing = size;
  }

  get full(): boolean {
    return this.missing === 0;
  }

  /**
   * The exact mean rounded once, so that of equal values is the value itself. It has a meaning
   * only once the window is full.
   */
  get mean(): number {
    return quotient(this.high, this.low, this.size);
  }

  /** Answers the value that leaves the window; zero, which sums do not notice, until it is full. */
  push(entering: number): number {
    const leaving = this.values[this.at]!;
    this.roll(entering);
    return leaving;
  }

  /**
   * Pushes a value and answers the mean, NaN until the window is full. `sumError` and `quotient` are
   * written out here: every bar of most strategies passes, V8 inlines calls only so deep, and a
   * number that a call returns without being inlined is one more object for the collector.
   */
  roll(entering: number): number {
    const { values, at, high, size, inverse } = this;
    const leaving = values[at]!;
    values[at] = entering;
    this.at = at + 1 < size ? at + 1 : 0;

    const change = entering - leaving;
    const sum = high + change;
    const removed = change - entering;
    const added = sum - high;
    const low =
      this.low +
      (entering -
        (change - removed) +
        (-leaving - removed) +
        (high - (sum - added) + (change - added)));
    this.low = low;
    this.high = sum;
    if (this.missing > 0) {
      this.missing--;
      if (this.missing > 0) return NaN;
    }
    const estimate = sum * inverse;
    const scaled = estimate * SPLITTER;
    const upper = scaled - (scaled - estimate);
    return estimate + (sum - upper * size - (estimate - upper) * size + low) * inverse;
  }
}

/** Population covariance from Σab, Σa and Σb; the variance of a when b is a. */
export function covariance(products: CompensatedSum, a: RollingSum, b: RollingSum): number {
  const { size } = a;
  const minuend = size * products.high;
  const subtrahend = a.high * b.high;
  const difference = minuend - subtrahend;
  const rest =
    sumError(minuend, -subtrahend, difference) +
    (productError(size, products.high, minuend) + size * products.low) -
    (productError(a.high, b.high, subtrahend) + a.high * b.low + a.low * b.high + a.low * b.low);
  return (difference + rest) / (size * size);
}

/** What rounding took from `sum = a + b`. */
function sumError(a: number, b: number, sum: number): number {
  const added = sum - a;
  return a - (sum - added) + (b - added);
}

/** What rounding took from `product = a * b`. */
function productError(a: number, b: number, product: number): number {
  const aUpper = upperHalf(a);
  const aLower = a - aUpper;
  const bUpper = upperHalf(b);
  const bLower = b - bUpper;
  return aLower * bLower - (product - aUpper * bUpper - aLower * bUpper - aUpper * bLower);
}

function quotient(high: number, low: number, divisor: number): number {
  const inverse = 1 / divisor;
  const estimate = high * inverse;
  const upper = upperHalf(estimate);
  const remainder = high - upper * divisor - (estimate - upper) * divisor + low;
  return estimate + remainder * inverse;
}

/** `x` rounded to 26 bits: what remains of `x` has as many, so products of halves are exact. */
function upperHalf(x: number): number {
  const scaled = x * SPLITTER;
  return scaled - (scaled - x);
}
