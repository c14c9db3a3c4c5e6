import { isoTime } from '../base/iso-time.ts';
import type { LogLine } from '../engine/strategy-log.ts';

/** File with the lines that a strategy logged; absent without any. */
export const LOG_FILE = 'log.txt';

/** A line of the log of a strategy: the time of its bar, and the text. */
export function logLine({ time, text }: LogLine): string {
  return `${isoTime(time).replace('.000Z', 'Z')} ${text}`;
}
