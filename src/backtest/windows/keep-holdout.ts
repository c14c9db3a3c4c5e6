import { addSpan, parseSpan } from '../../base/calendar-span.ts';
import type { BacktestJob } from '../job.ts';
import { windowOf } from './window-of.ts';

/** The last period of the data, which is kept from searches. */
export interface Holdout {
  /** Length of the period as written in the bot file: `1y`. */
  readonly period: string;
  /** First and last bar of the period, RFC 3339. */
  readonly from: string;
  readonly to: string;
  /** Whether this run includes it. */
  readonly is_open: boolean;
  /** How often it was opened, this run included; null if that is unknown. */
  readonly opened: number | null;
  /** Number of earlier trials that included bars of it; null if that is unknown. */
  readonly trials: number | null;
}

/**
 * Ends a job before its last period.
 *
 * @param period such as `1y`, up to the last bar of any instrument
 * @param isOpen whether the job keeps these bars nevertheless
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
