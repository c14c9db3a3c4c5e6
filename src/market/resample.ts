import { ServiceError } from '../base/errors.ts';
import { allocateBars, appendBar, joinBars, type Bars, type Candle } from './bars.ts';
import { formatTime } from './bar-time.ts';
import { Periods } from './periods.ts';
import {
  barSpacing,
  formatSpacing,
  isMultiple,
  timeframeOfSpacing,
  type Timeframe,
} from './timeframe.ts';
import type { TradingCalendar } from './trading-calendar.ts';

/**
 * Combines bars into longer bars, in order of time: first open, highest high, lowest low, last close
 * and sum of volumes. The time of a longer bar is the start of its period; a period without bars has
 * none.
 */
export class Resampler {
  /** The last bar may be incomplete. Columns may be longer than `length`. */
  bars: Bars;
  /** Instant from which the last bar is complete, ms. */
  end = -Infinity;
  readonly periods: Periods;
  #until = -Infinity;
  #through = -Infinity;

  /** @param before complete bars, which come first */
  constructor(periods: Periods, before = allocateBars(0)) {
    this.periods = periods;
    this.bars = joinBars(before);
  }

  /**
   * Adds the bar at `index` of `source`.
   *
   * @throws ServiceError `invalid_data` if it spans two periods, such as weeks in months, or days that
   *   begin at 15:00Z in weeks.
   */
  add(source: Bars, index: number): void {
    const time = source.time[index]!;
    if (time >= this.#through) {
      const period = this.periods.of(time);
      if (period === undefined) return;
      if (period.start !== this.bars.time[this.bars.length - 1]) {
        this.bars = appendBar(this.bars, period.start, startAt(source.open[index]!));
      }
      this.end = period.end;
      this.#until = period.until;
      this.#through = period.through;
    }
    const { length, timeframe } = this.periods;
    if (time + length > this.#until) throw straddles(time, length, timeframe);
    const { high, low, close, volume } = this.bars;
    const at = this.bars.length - 1;
    high[at] = Math.max(high[at]!, source.high[index]!);
    low[at] = Math.min(low[at]!, source.low[index]!);
    close[at] = source.close[index]!;
    volume[at]! += source.volume[index]!;
  }
}

function startAt(open: number): Candle {
  return { open, high: -Infinity, low: Infinity, close: open, volume: 0 };
}

/**
 * Combines bars into bars of a longer timeframe; see `Periods`. Resampling in several steps gives the same
 * result, except for rounding of fractional volumes.
 *
 * @param bars in order of time
 * @throws ServiceError `invalid_data` if bars are longer than `timeframe` or span two of its periods.
 */
export function resample(bars: Bars, timeframe: Timeframe, calendar?: TradingCalendar): Bars {
  const resampler = new Resampler(new Periods(timeframe, lengthWithin(bars, timeframe), calendar));
  for (let index = 0; index < bars.length; index++) resampler.add(bars, index);
  return joinBars(resampler.bars);
}

/**
 * Length of a bar, ms, of which a whole number must fill a bucket; 0 if it is unknown or each bar is
 * alone in its bucket.
 */
function lengthWithin(bars: Bars, timeframe: Timeframe): number {
  const spacing = barSpacing(bars);
  if (spacing === undefined) return 0;
  const own = timeframeOfSpacing(spacing);
  // A few bars, such as one of a Friday and one of a Monday, give only an upper bound of their length.
  const isSparse = own === undefined && spacing % timeframe.ms === 0;
  if (own?.name === timeframe.name || isSparse) return 0;
  if (isMultiple(timeframe, spacing)) return spacing;
  throw new ServiceError(
    'invalid_data',
    `bars ${formatSpacing(spacing)} apart cannot be resampled to ${timeframe.name}`,
    { remedy: 'Choose a timeframe that is a multiple of the bars, or data with shorter bars.' },
  );
}

function straddles(time: number, length: number, { name }: Timeframe): ServiceError {
  return new ServiceError(
    'invalid_data',
    `the bar of ${formatTime(time)}, ${formatSpacing(length)} long, spans two bars of ${name}`,
    {
      remedy:
        'Choose a timeframe that is a multiple of the bars (in UTC), or write the times of daily bars as ' +
        'dates.',
    },
  );
}
