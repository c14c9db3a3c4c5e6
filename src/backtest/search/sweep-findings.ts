import { DAY } from '../../base/durations.ts';
import { windowBeyondData } from '../data-findings.ts';
import { outsideFinding, shortWindow } from '../findings.ts';
import type { BacktestJob } from '../job.ts';
import type { Finding } from '../summary.ts';

/** Finds reasons to doubt the results of all trials. */
export function sweepFindings(job: BacktestJob): Finding[] {
  const { from, to } = spanOf(job);
  return [
    windowBeyondData(job.instruments),
    shortWindow((to - from) / DAY),
    outsideFinding(job.lock.outside),
  ].filter((finding) => finding !== undefined);
}

/** Times of the first and last bar of all instruments, ms since the epoch. */
export function spanOf({ instruments }: BacktestJob): {
  readonly from: number;
  readonly to: number;
} {
  const times = instruments.map(({ bars }) => bars.time);
  return {
    from: Math.min(...times.map((time) => time[0]!)),
    to: Math.max(...times.map((time) => time.at(-1)!)),
  };
}
