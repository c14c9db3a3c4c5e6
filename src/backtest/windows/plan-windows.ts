import { addSpan, type CalendarSpan } from '../../base/calendar-span.ts';
import { DAY } from '../../base/durations.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatTime, type Window } from '../../market/bar-time.ts';

export interface WindowOptions {
  readonly train: CalendarSpan;
  readonly test: CalendarSpan;
  /** Starts every training window at the first bar, so that they grow; by default they roll. */
  readonly anchored: boolean;
  /** Left out between training and test, so that no position or label spans both; none by default. */
  readonly embargo?: CalendarSpan | undefined;
}

export interface TrainTest {
  readonly train: Window;
  readonly test: Window;
}

/** Span in which all instruments have bars. */
export interface CommonSpan {
  /** Times of the first and the last bar, ms since the epoch. */
  readonly first: number;
  readonly last: number;
}

/**
 * Plans the windows of a walk-forward analysis. Windows begin at midnight UTC of the first bar. Test
 * windows follow each other without a gap, the first one after the first training window and the
 * embargo. The last one ends with the last bar, and may be shorter.
 *
 * @throws ServiceError `usage` if the data end before the first test window
 */
export function planWindows(
  { first, last }: CommonSpan,
  { train, test, anchored, embargo }: WindowOptions,
): TrainTest[] {
  const start = Math.floor(first / DAY) * DAY;
  const before = (instant: number): number =>
    embargo === undefined ? instant : addSpan(instant, embargo, -1);
  const trainEnd = addSpan(start, train);
  const firstTest = embargo === undefined ? trainEnd : addSpan(trainEnd, embargo);
  const windows: TrainTest[] = [];
  for (let index = 0; ; index += 1) {
    const from = addSpan(firstTest, test, index);
    if (from > last) break;
    const to = Math.min(addSpan(firstTest, test, index + 1), last + 1);
    const end = index === 0 ? trainEnd : before(from);
    windows.push({
      train: { from: anchored || index === 0 ? start : addSpan(end, train, -1), to: end },
      test: { from, to },
    });
  }
  if (windows.length > 0) return windows;
  throw new ServiceError(
    'usage',
    `the data end ${formatTime(last)}, before the first test window, which begins ${formatTime(firstTest)}`,
    { remedy: 'Choose shorter training windows, or use a longer history.' },
  );
}
