import { addSpan, parseSpan } from '../../base/calendar-span.ts';
import type { BacktestJob } from '../job.ts';
import { windowOf } from './window-of.ts';
import type { Holdout } from '../summary.ts';

/**
 * Ends a job before its holdout.
 *
 * @param period such as `1y`, up to the last of the times
 * @param times of the bars of each instrument, up to the end of the holdout
 * @param isOpen whether the job keeps the bars of the holdout and those after it
 * @throws ServiceError `invalid_data` if no bar is left
 */
export function keepHoldout(
  job: BacktestJob,
  period: string,
  times: readonly Float64Array[],
  isOpen: boolean,
): BacktestJob {
  const last = Math.max(...times.map((time) => time.at(-1)!));
  const kept = addSpan(last, parseSpan(period), -1);
  const from = Math.min(...times.map((time) => time.find((instant) => instant > kept) ?? last));
  const holdout: Holdout = {
    period,
    from: new Date(from).toISOString(),
    to: new Date(last).toISOString(),
    is_open: isOpen,
    opened: null,
    trials: null,
  };
  return { ...(isOpen ? job : windowOf(job, { to: kept + 1 })), holdout };
}
