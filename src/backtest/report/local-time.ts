import { MINUTE } from '../../base/durations.ts';

interface LocalTime {
  /** In English. */
  readonly weekday: string;
  /** Such as `09:00`. */
  readonly hour: string;
}

/** All time zones change their offset from UTC at a multiple of this. */
const BLOCK = 15 * MINUTE;

/**
 * Returns a function of the weekday and the hour at a time in ms.
 *
 * @param timeZone IANA name
 */
export function localTimes(timeZone: string): (time: number) => LocalTime {
  const parts = { timeZone, weekday: 'long', hour: '2-digit', hourCycle: 'h23' } as const;
  const format = new Intl.DateTimeFormat('en-US', parts);
  // Formatting is slow, and many trades begin in the same block.
  const known = new Map<number, LocalTime>();
  return (time) => {
    const block = Math.floor(time / BLOCK) * BLOCK;
    let local = known.get(block);
    if (local === undefined) {
      const found = format.formatToParts(block);
      const valueOf = (type: string): string => found.find((part) => part.type === type)!.value;
      local = { weekday: valueOf('weekday'), hour: `${valueOf('hour')}:00` };
      known.set(block, local);
    }
    return local;
  };
}
