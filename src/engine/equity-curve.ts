/** Figures of an equity curve. */
export interface Drawdown {
  /** Highest equity, the initial one included; account currency. */
  readonly peak: number;
  /** Largest share of a peak that was lost, as a number of at most 0; below −1 for a debt. */
  readonly deepest: number;
  /** Longest time from a peak to the step that reached it again, or to the last step; ms. */
  readonly longestMs: number;
}

/** Maximum number of values that a loop writes in less time than a call of `fill` takes. */
const FEW = 64;

/** The equity of a run at the close of each step, account currency, and its drawdowns. */
export class EquityCurve {
  readonly #initial: number;
  /** Opening instants of the steps, ms. Like `values`, it may have room for further steps. */
  times: Float64Array;
  values: Float64Array;
  /** Number of steps whose equity is known. */
  recorded = 0;
  // −0 makes V8 store the fields as doubles from the start; it compares equal to 0.
  /** Highest equity so far, the initial one included. */
  peak = -0;
  #peakAt = 0;
  /** Lowest equity since the peak. It is divided by the peak once, before the next one. */
  #low = -0;
  #deepest = 0;
  #longestMs = 0;

  /** @param initial equity before the first step. */
  constructor(initial: number, times: Float64Array, values: Float64Array) {
    this.#initial = initial;
    this.times = times;
    this.values = values;
    this.recordAll(0);
  }

  /** Starts again and adds the first `count` values. */
  recordAll(count: number): void {
    this.peak = this.#initial;
    this.#peakAt = 0;
    this.#low = this.#initial;
    this.#deepest = 0;
    this.#longestMs = 0;
    for (let step = 0; step < count; step += 1) this.record(step);
  }

  /** Adds the value of the step. The caller writes it first, since passing a number may allocate memory. */
  record(step: number): void {
    const value = this.values[step]!;
    if (value >= this.peak) this.#rise(step);
    else if (value < this.#low) this.#low = value;
    this.recorded = step + 1;
  }

  /** Adds the same value for the steps from `step` up to `end`. */
  hold(step: number, end: number, value: number): void {
    const { values } = this;
    if (end - step > FEW) values.fill(value, step, end);
    else for (let at = step; at < end; at += 1) values[at] = value;
    this.record(step);
    if (value === this.peak) this.#peakAt = end - 1;
    this.recorded = end;
  }

  /**
   * Adds the value of cash and a position at the closes of the steps from `step` up to `end`.
   *
   * @returns the step after the last one that was added. None is added after one without equity.
   */
  mark(step: number, end: number, cash: number, position: number, close: Float64Array): number {
    const { values } = this;
    let { peak } = this;
    let low = this.#low;
    let at = step;
    for (let value = Infinity; at < end && value > 0; at += 1) {
      value = cash + position * close[at]!;
      values[at] = value;
      if (value >= peak) {
        this.#low = low;
        this.#rise(at);
        peak = value;
        low = value;
      } else if (value < low) low = value;
    }
    this.#low = low;
    this.recorded = at;
    return at;
  }

  drawdown(): Drawdown {
    const { peak, recorded } = this;
    const isDown = this.#low < peak;
    return {
      peak,
      deepest: isDown ? Math.min(this.#deepest, this.#low / peak - 1) : this.#deepest,
      longestMs: isDown ? this.#longestSince(recorded - 1) : this.#longestMs,
    };
  }

  /** Ends a drawdown at a step whose value is at least the peak. */
  #rise(step: number): void {
    if (this.#low < this.peak) {
      this.#deepest = Math.min(this.#deepest, this.#low / this.peak - 1);
      this.#longestMs = this.#longestSince(step);
    }
    this.peak = this.values[step]!;
    this.#peakAt = step;
    this.#low = this.peak;
  }

  #longestSince(step: number): number {
    return Math.max(this.#longestMs, this.times[step]! - this.times[this.#peakAt]!);
  }
}

export function drawdownOf(initial: number, times: Float64Array, values: Float64Array): Drawdown {
  const curve = new EquityCurve(initial, times, values);
  curve.recordAll(values.length);
  return curve.drawdown();
}
