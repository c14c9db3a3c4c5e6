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
  return timeZone === 'UTC' ? utcTime : zonedTimes(timeZone);
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** Several times as fast as a formatter; long runs have tens of thousands of trades. */
function utcTime(time: number): LocalTime {
  const date = new Date(time);
  const hour = String(date.getUTCHours()).padStart(2, '0');
  return { weekday: WEEKDAYS[date.getUTCDay()]!, hour: `${hour}:00` };
}

function zonedTimes(timeZone: string): (time: number) => LocalTime {
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
