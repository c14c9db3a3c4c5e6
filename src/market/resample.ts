import { ServiceError } from '../base/errors.ts';
import { allocateBars, type Bars } from './bars.ts';
import { DAY } from '../base/durations.ts';
import { formatTime } from './bar-time.ts';
import { barSpacing, formatSpacing, timeframeOfSpacing, type Timeframe } from './timeframe.ts';

/** 1970-01-01 was a Thursday; weeks begin on the Monday before. */
const FIRST_MONDAY = -3 * DAY;

/** Returns the UTC bucket that contains an instant; weeks begin on Monday. */
export function bucketOf(time: number, { name, ms }: Timeframe): { start: number; end: number } {
  if (name === '1mo') {
    const date = new Date(time);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return { start: Date.UTC(year, month, 1), end: Date.UTC(year, month + 1, 1) };
  }
  const origin = name === '1w' ? FIRST_MONDAY : 0;
  const start = Math.floor((time - origin) / ms) * ms + origin;
  return { start, end: start + ms };
}

/**
 * Combines bars into longer bars, aligned to UTC: first open, highest high, lowest low, last close and
 * sum of volumes. The time of a bar is the start of its bucket; empty buckets have no bar. Resampling
 * in several steps gives the same result, except for rounding of fractional volumes.
 *
 * @param bars in order of time
 * @throws ServiceError `invalid_data` if bars are longer than `timeframe` or span two of its buckets,
 *   such as weeks in months, or days that begin at 15:00Z in weeks.
 */
export function resample(bars: Bars, timeframe: Timeframe): Bars {
  const length = lengthWithin(bars, timeframe);
  const result = allocateBars(countBuckets(bars, timeframe));
  let bucket = -1;
  let end = -Infinity;
  for (let index = 0; index < bars.length; index++) {
    const time = bars.time[index]!;
    if (time >= end) {
      bucket++;
      const bounds = bucketOf(time, timeframe);
      end = bounds.end;
      result.time[bucket] = bounds.start;
      result.open[bucket] = bars.open[index]!;
      result.low[bucket] = Infinity;
    }
    if (time + length > end) throw straddles(time, length, timeframe);
    result.high[bucket] = Math.max(result.high[bucket]!, bars.high[index]!);
    result.low[bucket] = Math.min(result.low[bucket]!, bars.low[index]!);
    result.close[bucket] = bars.close[index]!;
    result.volume[bucket]! += bars.volume[index]!;
  }
  return result;
}

function countBuckets({ length, time }: Bars, timeframe: Timeframe): number {
  let count = 0;
  let end = -Infinity;
  for (let index = 0; index < length; index++) {
    if (time[index]! < end) continue;
    count++;
    end = bucketOf(time[index]!, timeframe).end;
  }
  return count;
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
  // Weeks and months are made of days.
  if (Math.min(timeframe.ms, DAY) % spacing === 0) return spacing;
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
