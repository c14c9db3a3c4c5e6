import type { Bot } from '../bots/load-bot.ts';
import { indicatorsOf } from '../bots/warm-up-need.ts';
import { formatCount } from '../base/format.ts';
import { lengthOf } from '../engine/history-need.ts';
import { barsOf } from '../engine/series/warm-up.ts';
import type { TimeframeName } from '../market/timeframe.ts';

/** Numbers of bars before the first step that a session requests from an exchange for each instrument. */
export interface WarmUpRequest {
  /** Bars of the session. */
  readonly bars: number;
  /** Complete bars of longer timeframes. */
  readonly longer: Readonly<Partial<Record<TimeframeName, number>>>;
}

export interface SessionWarmUp extends WarmUpRequest {
  /** Sentences on indicators that depend on still older bars. */
  readonly notes: readonly string[];
}

/** Bars for an indicator that depends on all bars since the first. */
const BARS_WITHOUT_BOUND = 4000;

/**
 * Counts the bars before a session at an exchange that its indicators need; older ones do not matter.
 * With a calendar, the session makes all longer bars itself, since an exchange does not follow it.
 */
export function warmUpOfSession(bot: Bot, barMs: number): SessionWarmUp {
  const { calendar } = bot.spec.spec.universe;
  let bars = 0;
  const longer: Partial<Record<TimeframeName, number>> = {};
  const notes: string[] = [];
  for (const { label, timeframe, barsPerEntry, warmUp } of indicatorsOf(bot) ?? []) {
    const [ready, settled] = [warmUp.ready, warmUp.settled].map((stretch) =>
      barsOf(stretch, lengthOf(timeframe, barMs), calendar),
    ) as [number, number];
    const count = Number.isFinite(settled) ? settled : Math.max(ready, BARS_WITHOUT_BOUND);
    if (count !== settled) {
      notes.push(
        `${label} depends on all bars since the first, and gets the last ${formatCount(count)} bars before the session.`,
      );
    }
    const isOwn = timeframe === '' || (calendar !== undefined && calendar !== '24/7');
    if (isOwn) bars = Math.max(bars, count * barsPerEntry);
    else {
      const name = timeframe as TimeframeName;
      longer[name] = Math.max(longer[name] ?? 0, count);
    }
  }
  return { bars, longer, notes };
}
