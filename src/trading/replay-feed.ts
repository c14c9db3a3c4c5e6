import type { BacktestJob } from '../backtest/job.ts';
import { mergeTimes } from '../engine/steps.ts';
import { findGaps } from '../market/gaps.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { ReplayFeed } from './feed.ts';
import type { SessionFeed } from './session-feed.ts';

/** The data of a backtest as though they came now, so many times as fast as the market was. */
export function replayOf(
  { instruments }: Pick<BacktestJob, 'instruments'>,
  timeframe: Timeframe,
  notes: readonly string[],
  speed: number | 'max',
): SessionFeed {
  return {
    total: mergeTimes(instruments.map(({ bars }) => bars)).length,
    barMs: timeframe.ms,
    notes,
    items: (after, signal) => new ReplayFeed({ instruments, timeframe, speed, after, signal }),
    source(symbol, taken) {
      const { bars, source } = instruments.find((one) => one.symbol === symbol)!;
      // Of a part of them it cannot be said what they were before they were made longer.
      return taken.length === bars.length
        ? source
        : { bars: taken.length, missing: findGaps(taken, timeframe).missing };
    },
  };
}
