import { DAY } from './durations.ts';

const digits = (number: number): string => String(number).padStart(2, '0');
/** `00:00:` to `23:59:`. */
const MINUTES = Array.from(
  { length: 24 * 60 },
  (_, minute) => `${digits(Math.floor(minute / 60))}:${digits(minute % 60)}:`,
);
/** `00.000Z` to `59.000Z`. */
const SECONDS = Array.from({ length: 60 }, (_, second) => `${digits(second)}.000Z`);

let day = Number.NaN;
/** Date of `day`, such as `2024-01-31T`. */
let date = '';

/**
 * Returns `new Date(ms).toISOString()`. It is several times as fast for whole seconds of the same day as
 * in the call before.
 */
export function isoTime(ms: number): string {
  if (ms % 1000 !== 0) return new Date(ms).toISOString();
  const own = Math.floor(ms / DAY);
  if (own !== day) {
    date = new Date(own * DAY).toISOString().slice(0, -'00:00:00.000Z'.length);
    day = own;
  }
  const second = (ms - own * DAY) / 1000;
  return date + MINUTES[Math.floor(second / 60)]! + SECONDS[second % 60]!;
}
