import { firstAtLeast } from '../../base/sorted.ts';
import type { Curve } from '../curve-statistics.ts';

/** First and last instant, both included, ms since the epoch. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/** The time that all runs cover; undefined if that is less than two steps of any of them. */
export function sharedWindow(runs: readonly Pick<Curve, 'time'>[]): Window | undefined {
  const from = Math.max(...runs.map(({ time }) => time[0]!));
  const to = Math.min(...runs.map(({ time }) => time.at(-1)!));
  const isCovered = runs.every(
    ({ time }) => firstAtLeast(time, to + 1, 0) - firstAtLeast(time, from, 0) >= 2,
  );
  return isCovered ? { from, to } : undefined;
}

/** The steps of a run in a window. The equity before them is the starting cash. */
export function cutTo({ time, equity, initialCash }: Curve, { from, to }: Window): Curve {
  const first = firstAtLeast(time, from, 0);
  const end = firstAtLeast(time, to + 1, first);
  return {
    time: time.subarray(first, end),
    equity: equity.subarray(first, end),
    initialCash: first === 0 ? initialCash : equity[first - 1]!,
  };
}
