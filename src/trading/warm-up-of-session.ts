import type { Bot } from '../bots/load-bot.ts';
import { indicatorsOf } from '../bots/warm-up-need.ts';
import { barsOf } from '../engine/series/warm-up.ts';
import { mostWarmUpBars } from './session-events.ts';

/**
 * Returns how many bars before a live session its indicators get: until the start no longer matters,
 * or as many as a session records.
 */
export function warmUpOfSession(bot: Bot, barMs: number): number {
  const most = mostWarmUpBars(bot.spec.spec.universe.symbols.length);
  const settled = (indicatorsOf(bot) ?? []).map(({ barsPerEntry, warmUp }) => {
    const { entries, days } = warmUp.settled;
    return barsOf({ entries: entries * barsPerEntry, days }, barMs);
  });
  return Math.min(most, Math.max(0, ...settled));
}
