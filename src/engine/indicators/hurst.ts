import { checkPeriod, type Indicator } from './indicator.ts';
import type { IndicatorKind } from '../series/computation.ts';
import { declare, type Series } from '../series/declared-series.ts';
import { ofWindow } from '../series/warm-up.ts';

/** Shortest stretch whose rescaled range is measured. */
const SHORTEST = 8;

/**
 * Hurst exponent by rescaled ranges (Hurst, 1951; Mandelbrot and Wallis, 1969) of the last `period`
 * changes of the input: above 0.5, changes tend to continue; below, to reverse. The changes are divided
 * into 1, 2, 4, … stretches of at least 8. For each division, the range of the cumulative deviations
 * from the mean, divided by the standard deviation, is averaged. The exponent is the slope of its
 * logarithm against that of the length, by least squares. For prices, pass their logarithm.
 *
 * Ready at bar `period + 1`; `period` is at least 16. Flat stretches do not count, and a flat window
 * gives 0.5. A step takes time in proportion to `period × log(period)`.
 */
export class Hurst implements Indicator {
  /** Two copies of a ring, so that the last `period` changes, oldest first, start at `at`. */
  private readonly changes: Float64Array;
  private readonly period: number;
  private at = 0;
  private count = -1;
  private previous = NaN;
  private exponent = NaN;

  constructor(period: number) {
    this.period = checkPeriod('period', period, 2 * SHORTEST);
    this.changes = new Float64Array(2 * period);
  }

  get ready(): boolean {
    return this.count >= this.period;
  }

  get value(): number {
    return this.exponent;
  }

  next(x: number): number {
    if (Number.isFinite(x)) {
      if (this.count >= 0) {
        this.changes[this.at] = x - this.previous;
        this.changes[this.at + this.period] = x - this.previous;
        this.at = (this.at + 1) % this.period;
      }
      this.previous = x;
      this.count++;
      if (this.ready) this.exponent = this.slope();
    }
    return this.exponent;
  }

  private slope(): number {
    let n = 0;
    let sumX = -0;
    let sumY = -0;
    let sumXX = -0;
    let sumXY = -0;
    for (let length = this.period; length >= SHORTEST; length = Math.floor(length / 2)) {
      const rescaled = this.meanRescaledRange(length);
      if (rescaled === 0) continue;
      const x = Math.log(length);
      const y = Math.log(rescaled);
      n++;
      sumX += x;
      sumY += y;
      sumXX += x * x;
      sumXY += x * y;
    }
    return n < 2 ? 0.5 : (n * sumXY - sumX * sumY) / (n * sumXX - sumX * sumX);
  }

  /** Over stretches of `length`, the last of which ends at the newest change; 0 if all are flat. */
  private meanRescaledRange(length: number): number {
    let sum = -0;
    let counted = 0;
    const end = this.at + this.period;
    for (let from = end - length; from >= this.at; from -= length) {
      const rescaled = this.rescaledRange(from, length);
      if (rescaled === 0) continue;
      sum += rescaled;
      counted++;
    }
    return counted === 0 ? 0 : sum / counted;
  }

  private rescaledRange(from: number, length: number): number {
    const { changes } = this;
    let mean = -0;
    for (let at = from; at < from + length; at++) mean += changes[at]!;
    mean /= length;
    let cumulative = -0;
    let highest = -0;
    let lowest = -0;
    let squares = -0;
    for (let at = from; at < from + length; at++) {
      const deviation = changes[at]! - mean;
      cumulative += deviation;
      squares += deviation * deviation;
      if (cumulative > highest) highest = cumulative;
      if (cumulative < lowest) lowest = cumulative;
    }
    return squares === 0 ? 0 : (highest - lowest) / Math.sqrt(squares / length);
  }
}

/** Declares {@link Hurst} of `input`. */
export function hurst(input: Series, period: number): Series {
  return declare(HURST, [input], [period]).value;
}

export const HURST: IndicatorKind<[period: number], Hurst, 'value'> = {
  name: 'hurst',
  lines: ['value'],
  scale: 'own',
  start: (period) => new Hurst(period),
  warmUp: (period) => ofWindow(period + 1),
  fill(machine, [input], [value], from, to) {
    for (let at = from; at < to; at++) value[at] = machine.next(input[at]!);
  },
};
