import { mergeTimes } from '../engine/steps.ts';
import { findGaps } from '../market/gaps.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { type FeedInstrument, ReplayFeed } from './feed.ts';
import type { SessionFeed } from './session-feed.ts';

interface ReplayedInstrument extends FeedInstrument {
  /** Number of bars in the source data, and of bars missing from it, before any resampling. */
  readonly source: { readonly bars: number; readonly missing: number };
}

/** Feeds recorded bars to a session at `speed` times the pace of the market. */
export function replayOf(
  { instruments }: { readonly instruments: readonly ReplayedInstrument[] },
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
      // How many source bars a partial series was resampled from is unknown.
      return taken.length === bars.length
        ? source
        : { bars: taken.length, missing: findGaps(taken, timeframe).missing };
    },
  };
}
