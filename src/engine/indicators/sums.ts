/**
 * Running sums that also keep their rounding errors: `high + low` has about 106 bits. A value that
 * is added and later subtracted leaves no error, regardless of the values between. A rolling figure
 * therefore depends only on its window, not on the start of the run.
 *
 * Sums and products without error: Knuth (TAOCP 2, §4.2.2) and Dekker (1971), combined as in Ogita,
 * Rump and Oishi, "Accurate Sum and Dot Product" (2005). They are exact for magnitudes below 1e300.
 * They share a file because V8 inlines functions of the same module better than imported ones.
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
   * The exact mean, rounded once, so that the mean of equal values is that value. Undefined until
   * the window is full.
   */
  get mean(): number {
    return quotient(this.high, this.low, this.size);
  }

  /** Returns the value that leaves the window; until it is full 0, which changes no sum. */
  push(entering: number): number {
    const leaving = this.values[this.at]!;
    this.roll(entering);
    return leaving;
  }

  /** Continues from a full window of these values, the oldest first, with their sum. */
  restart(high: number, low: number, values: Float64Array): void {
    this.high = high;
    this.low = low;
    this.values.set(values);
    this.at = 0;
  }

  /**
   * Pushes a value and returns the mean, NaN until the window is full. `sumError` and `quotient`
   * are inlined by hand: most strategies call this at every bar, V8 limits the depth of inlining,
   * and a call that is not inlined allocates an object for the number that it returns.
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

/**
 * Writes `roll` of the entries `from ≤ index < to` of a column, all finite numbers. In a long
 * stretch, the values that leave the window are read from the column, and the sum stays in registers,
 * which takes half the time.
 */
export function rollColumn(
  window: RollingSum,
  input: Float64Array,
  means: Float64Array,
  from: number,
  to: number,
): void {
  const { size } = window;
  const isLong = window.full && to - from > 2 * size;
  let at = from;
  for (const end = isLong ? from + size : to; at < end; at++) means[at] = window.roll(input[at]!);
  if (!isLong) return;
  const inverse = 1 / size;
  let { high, low } = window;
  for (; at < to; at++) {
    const entering = input[at]!;
    const leaving = input[at - size]!;
    const change = entering - leaving;
    const sum = high + change;
    low += sumError(entering, -leaving, change) + sumError(high, change, sum);
    high = sum;
    const estimate = sum * inverse;
    const upper = upperHalf(estimate);
    means[at] = estimate + (sum - upper * size - (estimate - upper) * size + low) * inverse;
  }
  window.restart(high, low, input.subarray(to - size, to));
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

/** Rounding error of `sum = a + b`. */
function sumError(a: number, b: number, sum: number): number {
  const added = sum - a;
  return a - (sum - added) + (b - added);
}

/** Rounding error of `product = a * b`. */
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

/** `x` rounded to 26 bits. The rest of `x` has 26 bits, too, so products of halves are exact. */
function upperHalf(x: number): number {
  const scaled = x * SPLITTER;
  return scaled - (scaled - x);
}
