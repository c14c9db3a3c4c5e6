import { DAY } from '../../base/durations.ts';
import { firstAtLeast } from '../../base/sorted.ts';
import type { EquityCurve } from '../equity-curve.ts';
import type { RiskState } from './risk-state.ts';

/** Equity from which losses are measured. It reads the curve only when an order needs it. */
export class DrawdownTracker {
  /** Highest equity at a close. */
  peak: number;
  /** Equity at the last close of the previous UTC day. */
  dayStart: number;
  readonly #initial: number;
  #dayEnd = -Infinity;
  #followed = 0;

  /** @param carried state of the account that this one continues. */
  constructor(equity: number, carried?: RiskState) {
    this.#initial = equity;
    this.peak = Math.max(equity, carried?.peak_equity ?? equity);
    this.dayStart = carried?.day_start_equity ?? equity;
    if (typeof carried?.day === 'string') this.#dayEnd = Date.parse(carried.day) + DAY;
  }

  get state(): Omit<RiskState, 'executions'> {
    const day = Number.isFinite(this.#dayEnd) ? dateOf(this.#dayEnd - DAY) : null;
    return { peak_equity: this.peak, day_start_equity: this.dayStart, day };
  }

  /** Reads the recorded equity; the day is that of `step`. */
  follow({ times, values, peak, recorded }: EquityCurve, step: number): void {
    if (times[step]! >= this.#dayEnd) this.#startDay(times, values, step);
    if (peak > this.peak) this.peak = peak;
    this.#followed = recorded;
  }

  #startDay(times: Float64Array, equity: Float64Array, step: number): void {
    const day = Math.floor(times[step]! / DAY) * DAY;
    const first = firstAtLeast(times.subarray(0, step + 1), day, this.#followed);
    this.dayStart = first > 0 ? equity[first - 1]! : this.#initial;
    this.#dayEnd = day + DAY;
  }
}

function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
