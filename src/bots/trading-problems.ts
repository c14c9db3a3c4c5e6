import type { Problem } from '../base/errors.ts';
import { NO_RISK_LIMITS } from '../engine/config.ts';
import type { BotSpec } from './spec.ts';

/**
 * Returns why a bot may not trade, on paper or in production; empty if it may.
 * @param exchange exchange that its orders go to; null for a simulated venue.
 */
export function tradingProblems({ spec }: BotSpec, exchange: string | null = null): Problem[] {
  const { kind, risk } = spec;
  if (kind === 'research') {
    const message =
      'a research bot does not trade: only one of kind trading does, on paper or in production';
    return [{ code: 'not_trading', pointer: '/spec/kind', message }];
  }
  const names = Object.keys(NO_RISK_LIMITS) as (keyof typeof NO_RISK_LIMITS)[];
  const state = 'to trade, state it: a value, or {unlimited: why}';
  if (risk === undefined) {
    const message = `is missing; ${state} for each of ${names.join(', ')}`;
    return [{ code: 'missing_field', pointer: '/spec/risk', message }];
  }
  const missing = names
    .filter((name) => risk[name] === undefined)
    .map((name) => ({
      code: 'missing_field',
      pointer: `/spec/risk/${name}`,
      message: `is missing; ${state}`,
    }));
  const venues = risk.permitted?.venues;
  if (exchange === null || venues === undefined || venues.includes(exchange)) return missing;
  const pointer = '/spec/risk/permitted/venues';
  const message = `the bot may not trade at ${exchange}, only at ${venues.join(', ') || 'none'}`;
  return [...missing, { code: 'venue_not_permitted', pointer, message }];
}
