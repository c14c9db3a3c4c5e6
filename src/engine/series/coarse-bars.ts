import { ServiceError } from '../../base/errors.ts';
import type { Bars } from '../../market/bars.ts';
import { Periods } from '../../market/periods.ts';
import { Resampler } from '../../market/resample.ts';
import {
  isMultiple,
  parseTimeframe,
  type Timeframe,
  type TimeframeName,
} from '../../market/timeframe.ts';
import { calendarOf, type CalendarName } from '../../market/trading-calendar.ts';

/** Timeframe and calendar of the bars of a run. */
export interface BarKind {
  /** Undefined if it is unknown; then no longer bars can be made. */
  readonly timeframe?: TimeframeName | undefined;
  /** 24/7 when absent. */
  readonly calendar?: CalendarName | undefined;
}

/** Bars of a longer timeframe, made from the bars of an instrument as they arrive. */
export class CoarseBars {
  readonly timeframe: Timeframe;
  /** Bars of the instrument in the longest bar. */
  readonly barsPerEntry: number;
  readonly #resampler: Resampler;
  #completedAt = new Int32Array(64);
  #completed = 0;
  #read = 0;
  /** Instant up to which the bars were given, ms. */
  readonly #givenUntil: number = -Infinity;

  /**
   * @param given complete bars, which come first. Bars of the instrument within their time are ignored.
   * @throws RangeError for an unknown timeframe, or one that does not consist of whole bars.
   */
  constructor({ timeframe, calendar }: BarKind, name: string, given?: Bars) {
    if (timeframe === undefined) throw new RangeError('on: the timeframe of the bars is unknown');
    const [own, longer] = [parseTimeframe(timeframe), longerTimeframe(name)];
    if (!isMultiple(longer, own.ms)) {
      throw new RangeError(
        `on: ${name} does not consist of whole bars of ${timeframe}; use a longer timeframe, or a shorter data.timeframe`,
      );
    }
    this.timeframe = longer;
    const periods = new Periods(longer, own.ms, calendarOf(calendar));
    this.barsPerEntry = periods.barsEach;
    this.#resampler = new Resampler(periods, given);
    if (given === undefined || given.length === 0) return;
    this.#completed = given.length;
    this.#completedAt = new Int32Array(given.length).fill(-1);
    this.#givenUntil = periods.endOf(given.time[given.length - 1]!);
  }

  /** Bars after the first `countAt(…)` may be incomplete. */
  get bars(): Bars {
    return this.#resampler.bars;
  }

  /** For each completed bar, the index of the bar at which it was complete; −1 if it was given. */
  get completedAt(): Int32Array {
    return this.#completedAt;
  }

  /** Number of bars that are complete at the bar `index`. */
  countAt(index: number): number {
    let [from, to] = [0, this.#completed];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#completedAt[middle]! <= index) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /**
   * Reads the bars of the instrument up to `length`.
   *
   * @throws ServiceError `invalid_data` as `Resampler.add`, and for a bar that overlaps another.
   */
  extend(source: Bars, length: number): void {
    const resampler = this.#resampler;
    const { length: ms } = resampler.periods;
    for (; this.#read < length; this.#read += 1) {
      const time = source.time[this.#read]!;
      if (time < this.#givenUntil) continue;
      if (time < resampler.end && this.#completed === resampler.bars.length) {
        throw new ServiceError(
          'invalid_data',
          `on: the bar of ${new Date(time).toISOString()} overlaps the one before`,
          { remedy: 'Remove this bar from the data.' },
        );
      }
      resampler.add(source, this.#read);
      // A later bar completes the one before it, whose own last bar is missing.
      const open = time + ms >= resampler.end ? 0 : 1;
      this.#complete(resampler.bars.length - open);
    }
  }

  #complete(count: number): void {
    for (; this.#completed < count; this.#completed += 1) {
      if (this.#completed === this.#completedAt.length) {
        const longer = new Int32Array(2 * this.#completed);
        longer.set(this.#completedAt);
        this.#completedAt = longer;
      }
      this.#completedAt[this.#completed] = this.#read;
    }
  }
}

/** @throws RangeError for an unknown name, with a suggestion or all names. */
function longerTimeframe(name: string): Timeframe {
  try {
    return parseTimeframe(name);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new RangeError(`on: ${error.message}. ${error.remedy}`, { cause: error });
  }
}
