import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import { DAY, HOUR, MINUTE } from '../base/durations.ts';

/**
 * Nominal lengths of bars, ms, shortest first. Lengths below a week divide a UTC day, so that no bucket
 * spans midnight. A month has its mean Gregorian length.
 */
const LENGTHS = {
  '1m': MINUTE,
  '2m': 2 * MINUTE,
  '3m': 3 * MINUTE,
  '5m': 5 * MINUTE,
  '10m': 10 * MINUTE,
  '15m': 15 * MINUTE,
  '20m': 20 * MINUTE,
  '30m': 30 * MINUTE,
  '1h': HOUR,
  '2h': 2 * HOUR,
  '3h': 3 * HOUR,
  '4h': 4 * HOUR,
  '6h': 6 * HOUR,
  '8h': 8 * HOUR,
  '12h': 12 * HOUR,
  '1d': DAY,
  '1w': 7 * DAY,
  '1mo': 30.436875 * DAY,
} as const;

export type TimeframeName = keyof typeof LENGTHS;

export const TIMEFRAME_NAMES = Object.keys(LENGTHS) as TimeframeName[];

export interface Timeframe {
  readonly name: TimeframeName;
  readonly ms: number;
}

/** The timeframe that a misspelled name probably means: `1w` for `1week`. */
export function similarTimeframe(text: string): TimeframeName | undefined {
  const [, count, unit] = /^(\d+) ?([a-z]+)$/i.exec(text) ?? [];
  const short = UNITS.find(([long]) => unit?.toLowerCase().replace(/s$/, '') === long)?.[1];
  const name = short === undefined ? closest(text, TIMEFRAME_NAMES) : `${count}${short}`;
  return TIMEFRAME_NAMES.find((known) => known === name);
}

const UNITS = [
  ['min', 'm'],
  ['minute', 'm'],
  ['hour', 'h'],
  ['hr', 'h'],
  ['day', 'd'],
  ['week', 'w'],
  ['month', 'mo'],
] as const;

/** @throws ServiceError `invalid_data` */
export function parseTimeframe(text: string): Timeframe {
  const name = TIMEFRAME_NAMES.find((known) => known === text);
  if (name === undefined) {
    const meant = similarTimeframe(text);
    throw new ServiceError('invalid_data', `unknown timeframe ${JSON.stringify(text)}`, {
      remedy: meant ? `Did you mean ${meant}?` : `Use one of ${TIMEFRAME_NAMES.join(', ')}.`,
    });
  }
  return { name, ms: LENGTHS[name] };
}

/**
 * Whether bars of the timeframe consist of whole bars of this length, ms, which is that of a
 * timeframe. Weeks and months are made of days.
 */
export function isMultiple({ ms }: Timeframe, length: number): boolean {
  return ms === length || Math.min(ms, DAY) % length === 0;
}

/** A sample suffices; scanning a long history would take as long as reading it. */
const SPACING_SAMPLE = 10_000;
/** Rarer distances are irregularities, such as the change to daylight saving time. */
const SPACING_SHARE = 0.05;

/**
 * Distance between neighboring bars in milliseconds: the shortest one that is not rare, because nights,
 * holidays and missing bars only lengthen it. `undefined` for fewer than two bars and for irregular
 * ones, where every distance is rare.
 */
export function barSpacing(bars: {
  readonly time: Float64Array;
  readonly length: number;
}): number | undefined {
  const counts = new Map<number, number>();
  const end = Math.min(bars.length, SPACING_SAMPLE);
  for (let index = 1; index < end; index++) {
    const distance = bars.time[index]! - bars.time[index - 1]!;
    counts.set(distance, (counts.get(distance) ?? 0) + 1);
  }
  const common = [...counts].filter(([, count]) => count >= SPACING_SHARE * (end - 1));
  return common.length === 0 ? undefined : Math.min(...common.map(([distance]) => distance));
}

/** The timeframe whose bars are `spacing` milliseconds apart, if any. */
export function timeframeOfSpacing(spacing: number): Timeframe | undefined {
  const isMonth = spacing >= 28 * DAY && spacing <= 31 * DAY;
  const name = isMonth ? '1mo' : TIMEFRAME_NAMES.find((known) => LENGTHS[known] === spacing);
  return name === undefined ? undefined : { name, ms: LENGTHS[name] };
}

/** `5m`, or `90 s` for a distance that is not a timeframe. */
export function formatSpacing(spacing: number): string {
  return timeframeOfSpacing(spacing)?.name ?? `${spacing / 1000} s`;
}
