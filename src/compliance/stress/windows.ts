export interface Series {
  /** Whole milliseconds since the epoch, in any order. */
  readonly times: Float64Array;
  /** Never negative; by default, each event counts 1. */
  readonly amounts?: Float64Array;
}

export interface BusiestWindow {
  readonly amount: number;
  /** Start of the window, ms since the epoch; undefined for an empty series. */
  readonly from: number | undefined;
}

/**
 * Finds the window `[t, t + width)` with the exact maximum; fixed buckets could show as little as half of
 * it. Returns the earliest of equal windows.
 *
 * @param order indexes in order of time, see `orderInTime`. @param width ms.
 */
export function busiestWindow(
  { times, amounts }: Series,
  order: Uint32Array,
  width: number,
): BusiestWindow {
  let most = 0;
  let from: number | undefined;
  let first = 0;
  let sum = 0;
  for (const last of order) {
    const time = times[last]!;
    sum += amounts === undefined ? 1 : amounts[last]!;
    while (times[order[first]!]! <= time - width) {
      sum -= amounts === undefined ? 1 : amounts[order[first]!]!;
      first += 1;
    }
    // A running sum accumulates rounding errors over millions of additions.
    if (sum > most * (1 + 1e-12)) {
      most = sum;
      from = times[order[first]!]!;
    }
  }
  return { amount: most, from };
}

const BITS = 11;
const DIGITS = 2 ** BITS;

/** Returns the indexes in order of time, by a radix sort between whose passes other work continues. */
export async function orderInTime(times: Float64Array): Promise<Uint32Array> {
  let order = Uint32Array.from(times, (_, at) => at);
  if (times.length === 0) return order;
  let begun = Infinity;
  let end = -Infinity;
  for (const time of times) {
    begun = Math.min(begun, time);
    end = Math.max(end, time);
  }
  let spare = new Uint32Array(times.length);
  for (let unit = 1; unit <= end - begun; unit *= DIGITS) {
    const digit = (at: number): number => Math.floor((times[at]! - begun) / unit) % DIGITS;
    const starts = new Uint32Array(DIGITS + 1);
    for (const at of order) starts[digit(at) + 1]! += 1;
    for (let i = 1; i <= DIGITS; i += 1) starts[i]! += starts[i - 1]!;
    for (const at of order) {
      const to = digit(at);
      spare[starts[to]!] = at;
      starts[to]! += 1;
    }
    [order, spare] = [spare, order];
    await new Promise(setImmediate);
  }
  return order;
}

/** A growing table of numbers, stored by column. */
export class Columns {
  #rows = 1024;
  #count = 0;
  readonly #columns: Float64Array[];

  constructor(width: number) {
    this.#columns = Array.from({ length: width }, () => new Float64Array(this.#rows));
  }

  get count(): number {
    return this.#count;
  }

  push(...row: readonly number[]): void {
    if (this.#count === this.#rows) {
      this.#rows *= 2;
      for (const [at, column] of this.#columns.entries()) {
        this.#columns[at] = new Float64Array(this.#rows);
        this.#columns[at].set(column);
      }
    }
    for (const [at, value] of row.entries()) this.#columns[at]![this.#count] = value;
    this.#count += 1;
  }

  column(at: number): Float64Array {
    return this.#columns[at]!.subarray(0, this.#count);
  }
}
