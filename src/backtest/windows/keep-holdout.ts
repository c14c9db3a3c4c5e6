import { addSpan, parseSpan } from '../../base/calendar-span.ts';
import { DAY } from '../../base/durations.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatTime } from '../../market/bar-time.ts';
import type { BacktestJob } from '../job.ts';
import { windowOf } from './window-of.ts';
import type { Holdout } from '../summary.ts';

/** Bars of the data whose last part is the holdout; a run with changed data has other bars. */
interface HeldData {
  /** Times of the bars of each instrument. */
  readonly times: readonly Float64Array[];
  readonly barMs: number;
  /** Whether the job keeps the bars of the holdout and those after it. */
  readonly isOpen: boolean;
}

/**
 * Ends a job before its holdout.
 *
 * @param period such as `1y`, up to the last of the times
 * @throws ServiceError `invalid_data` if no bar is left
 */
export function keepHoldout(
  job: BacktestJob,
  period: string,
  { times, barMs, isOpen }: HeldData,
): BacktestJob {
  const last = Math.max(...times.map((time) => time.at(-1)!));
  const kept = addSpan(last, parseSpan(period), -1);
  const from = Math.min(...times.map((time) => time.find((instant) => instant > kept) ?? last));
  // A longer bar that begins before the holdout may end within it.
  const end = kept + 1 - Math.max(0, longestOf(job.barMs) - longestOf(barMs));
  if (!isOpen) requireBarsBefore(end, job, period);
  const touches = job.instruments.some(({ bars }) => bars.time[bars.length - 1]! >= end);
  const holdout: Holdout = {
    period,
    from: new Date(from).toISOString(),
    to: new Date(last).toISOString(),
    is_open: isOpen && touches,
    opened: null,
    trials: null,
  };
  return { ...(isOpen ? job : windowOf(job, { to: end })), holdout };
}

function requireBarsBefore(end: number, { instruments }: BacktestJob, period: string): void {
  const held = instruments.find(({ bars }) => bars.time[0]! >= end);
  if (held === undefined) return;
  throw new ServiceError(
    'invalid_data',
    `the holdout ${period} leaves ${held.symbol} no bars: its first bar is ${formatTime(held.bars.time[0]!)}`,
    { remedy: 'Choose a shorter holdout, or read earlier data.' },
  );
}

/** Length of the longest bar of a timeframe; months differ. */
const longestOf = (barMs: number): number => (barMs >= 28 * DAY ? 31 * DAY : barMs);
