import type { Problem } from '../base/errors.ts';
import { REQUIRED_LIMIT_NAMES } from '../base/risk-limits.ts';
import type { BotSpec } from './spec.ts';

/**
 * Returns the reasons why a bot may not trade, on paper or in production.
 * @param exchange destination of its orders; null for a simulated venue.
 */
export function tradingProblems({ spec }: BotSpec, exchange: string | null = null): Problem[] {
  const { kind, risk } = spec;
  if (kind === 'research') {
    const message = 'a research bot cannot trade, not even on paper; use kind: trading';
    return [{ code: 'not_trading', pointer: '/spec/kind', message }];
  }
  const state = 'a bot that trades needs a value or {unlimited: "reason"}';
  if (risk === undefined) {
    const message = `missing field risk: ${state} for each of ${REQUIRED_LIMIT_NAMES.join(', ')}`;
    return [{ code: 'missing_field', pointer: '/spec/risk', message }];
  }
  const missing = REQUIRED_LIMIT_NAMES.filter((name) => risk[name] === undefined).map((name) => ({
    code: 'missing_field',
    pointer: `/spec/risk/${name}`,
    message: `missing field ${name}: ${state}`,
  }));
  const venues = risk.permitted?.venues;
  if (exchange === null || venues === undefined || venues.includes(exchange)) return missing;
  const pointer = '/spec/risk/permitted/venues';
  const message = `the bot may not trade at ${exchange}, only at ${venues.join(', ') || 'none'}`;
  return [...missing, { code: 'venue_not_permitted', pointer, message }];
}
