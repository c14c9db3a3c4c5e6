import { addSpan, parseSpan } from '../../base/calendar-span.ts';
import type { BacktestJob } from '../job.ts';
import { windowOf } from './window-of.ts';
import type { Holdout } from '../summary.ts';

/**
 * Ends a job before its last period.
 *
 * @param period such as `1y`, up to the last bar of any instrument
 * @param isOpen whether the job keeps these bars
 * @throws ServiceError `invalid_data` if no bar is left
 */
export function keepHoldout(job: BacktestJob, period: string, isOpen: boolean): BacktestJob {
  const times = job.instruments.map(({ bars }) => bars.time.subarray(0, bars.length));
  const last = Math.max(...times.map((time) => time.at(-1)!));
  const kept = addSpan(last, parseSpan(period), -1);
  const firsts = times.map((time) => time.find((instant) => instant > kept) ?? last);
  const holdout: Holdout = {
    period,
    from: new Date(Math.min(...firsts)).toISOString(),
    to: new Date(last).toISOString(),
    is_open: isOpen,
    opened: null,
    trials: null,
  };
  return { ...(isOpen ? job : windowOf(job, { to: kept + 1 })), holdout };
}
