import { isoTime } from '../base/iso-time.ts';
import type { LogLine } from '../engine/strategy-log.ts';

/** File with the lines that a strategy logged; missing if it logged none. */
export const LOG_FILE = 'log.txt';

/** Formats a line as the time of its bar and the text. */
export function logLine({ time, text }: LogLine): string {
  return `${isoTime(time).replace('.000Z', 'Z')} ${text}`;
}
