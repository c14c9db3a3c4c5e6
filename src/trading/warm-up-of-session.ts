import type { Bot } from '../bots/load-bot.ts';
import { indicatorsOf } from '../bots/warm-up-need.ts';
import { formatCount } from '../base/format.ts';
import { barsOf } from '../engine/series/warm-up.ts';
import { mostWarmUpBars } from './session-events.ts';

export interface SessionWarmUp {
  /** Bars before the first step that indicators get. */
  readonly bars: number;
  /** Sentences on indicators that need more bars than a session records. */
  readonly notes: readonly string[];
}

/**
 * Returns how many bars before a session its indicators get: until the start no longer matters, or as
 * many as a session records.
 */
export function warmUpOfSession(bot: Bot, barMs: number): SessionWarmUp {
  const { symbols, calendar } = bot.spec.spec.universe;
  const most = mostWarmUpBars(symbols.length);
  const needs = (indicatorsOf(bot) ?? []).map(({ label, timeframe, barsPerEntry, warmUp }) => {
    const countBars = ({ entries, days }: (typeof warmUp)['ready']): number =>
      barsOf({ entries: entries * barsPerEntry, days }, barMs, calendar);
    return {
      name: timeframe === '' ? label : `${label} of ${timeframe}`,
      ready: countBars(warmUp.ready),
      settled: countBars(warmUp.settled),
    };
  });
  const given = `a session has at most ${formatCount(most)} bars of each instrument before its first step`;
  return {
    bars: Math.min(most, Math.max(0, ...needs.map(({ settled }) => settled))),
    notes: needs
      .filter(({ settled }) => settled > most)
      .map(({ name, ready }) =>
        ready > most
          ? `${name} is not ready at the start: it needs ${formatCount(ready)} bars, and ${given}.`
          : `The first values of ${name} depend on earlier bars, and ${given}.`,
      ),
  };
}
