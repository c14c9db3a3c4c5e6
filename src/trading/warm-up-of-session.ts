import type { Bot } from '../bots/load-bot.ts';
import { warmUpNeed } from '../bots/warm-up-need.ts';
import { mostWarmUpBars } from './session-events.ts';

/**
 * Returns how many bars before a live session its indicators get: until the start no longer matters,
 * or as many as a session records.
 */
export function warmUpOfSession(bot: Bot, barMs: number): number {
  const most = mostWarmUpBars(bot.spec.spec.universe.symbols.length);
  const { indicators } = warmUpNeed(bot, barMs) ?? { indicators: [] };
  const settled = indicators.map((indicator) => indicator.settled ?? most);
  return Math.min(most, Math.max(0, ...settled));
}
