import { DAY } from '../../base/durations.ts';
import type { RunState } from '../run-state.ts';
import type { RiskState } from './risk-state.ts';

/** Equity from which losses are measured. It reads the equity curve only when an order needs it. */
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
  follow({ times, equity, recorded }: RunState, step: number): void {
    for (; this.#followed < recorded; this.#followed += 1) {
      const at = this.#followed;
      if (times[at]! >= this.#dayEnd) this.#startDay(times, equity, at);
      if (equity[at]! > this.peak) this.peak = equity[at]!;
    }
    if (times[step]! >= this.#dayEnd) this.#startDay(times, equity, step);
  }

  #startDay(times: Float64Array, equity: Float64Array, step: number): void {
    this.dayStart = step > 0 ? equity[step - 1]! : this.#initial;
    this.#dayEnd = (Math.floor(times[step]! / DAY) + 1) * DAY;
  }
}

function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
